"""Which processes are a program's, when it is told to stop."""

import subprocess
import sys

import pytest

#: A launcher whose program ended, where the number of the program's session is one of ``sleep``: of what the program
#: started, or of another program, which is not below a launcher that adopts no orphans.
LAUNCHER = """
import os, subprocess, sys
from scriptmode_runtime.processes import system
from scriptmode_runtime.processes.process_tree import ProcessTree
if {is_own}:
    system.adopt_orphans()
command = ["sh", "-c", "sleep 600 2>/dev/null >/dev/null & echo $!"]
program = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
started = int(program.stdout.readline())
program.wait()
tree = ProcessTree(program.pid, has_ended=True)
print(tree.is_alive(), tree.pids() == [started])
os.kill(started, 9)
"""


@pytest.mark.parametrize("is_own", [True, False], ids=["of the program", "of another one"])
def test_only_the_descendants_of_an_ended_program_belong_to_it(is_own):
    command = [sys.executable, "-c", LAUNCHER.format(is_own=is_own)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == f"{is_own} {is_own}\n"
