"""The reason of a job's failure where ``mpirun`` ends first: it fails because another host was lost."""

import os
import subprocess
import sys

import pytest
from processes.driver import LAUNCHER
from processes.launchers import ENTRYPOINTS

#: ``run(ends, then)`` runs a program as ``mpirun``; ``then(others)`` is called once its end was seen, and never before.
DRIVER = f"""{LAUNCHER}
import sys
from scriptmode_runtime import supervisor
from scriptmode_runtime.peers.base import Peers, lost_host

supervisor._REASON_SECONDS = float(sys.argv[1])
failed = "mpirun"

class Others(Peers):
    finished = disconnected = True

    def __init__(self, then):
        self.then = then

    def fail(self, failure):
        self.failure = self.failure or failure

    def announce(self, event):
        pass

    def deadline(self):
        return None

    def tick(self):
        if self.failure is None and any(child.status is not None for child in self.processes.started):
            self.then(self)

def described(spec, status, output):
    return Failure("algo-1", failed, 255, failed + " " + str(status))

def loses(others):
    others.fail(lost_host("algo-2", "its launcher was lost"))

def reports(others):
    global failed
    failed = "rank 3"

def run(ends, then):
    program = ProcessSpec("mpirun", (sys.executable, "-c", ends), dict(), "/", "ranks")
    with launcher(described, peers=Others(then)) as it:
        print(it.run(LaunchPlan(program)).message)
"""
_LONG, _SHORT = 60.0, 0.05
_FAILS, _DIES = "import sys; sys.exit(255)", "import os; os.kill(os.getpid(), 9)"


@pytest.mark.parametrize(
    ("ends", "then", "seconds", "reason"),
    [
        (_FAILS, "loses", _LONG, "algo-2: its launcher was lost"),
        (_FAILS, "reports", _LONG, "rank 3 255"),
        (_FAILS, "print", _SHORT, "mpirun 255"),
        (_DIES, "loses", _LONG, "mpirun -9"),
    ],
    ids=["host lost", "rank failed", "nothing else", "mpirun killed"],
)
def test_mpirun_is_the_reason_where_no_rank_and_no_other_host_is(ends, then, seconds, reason):
    env = {**os.environ, "PYTHONPATH": str(ENTRYPOINTS), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", f"{DRIVER}\nrun({ends!r}, {then})", str(seconds)]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=True)
    assert ran.stdout.splitlines()[-1] == reason, ran
