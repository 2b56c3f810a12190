"""A launcher of its own for a plan of any processes."""

import json
import os
import subprocess
import sys

from processes.launchers import ENTRYPOINTS

#: Python source: ``launcher(describe)`` is a supervisor of one host.
LAUNCHER = """
from contextlib import contextmanager
from scriptmode_runtime._values.failure import HostFailure
from scriptmode_runtime._peers.agreement import Agreement
from scriptmode_runtime.plan import LaunchPlan, ProcessSpec
from scriptmode_runtime._processes.host_processes import HostProcesses
from scriptmode_runtime._processes.launcher_output import LauncherOutput
from scriptmode_runtime._processes.loop import Loop
from scriptmode_runtime._launch.supervisor import Supervisor

@contextmanager
def launcher(describe):
    with Loop() as loop, LauncherOutput(loop) as output:
        processes = HostProcesses("algo-1", loop, output)
        with Supervisor(processes, Agreement(None), describe, stop_grace=2.0) as supervisor:
            yield supervisor
"""
DRIVER = f"""{LAUNCHER}
import json, sys

def describe(spec, status, output):
    return HostFailure("algo-1", spec.name, 1, spec.name + " " + str(status))

def spec(name, *argv):
    return ProcessSpec(name, (sys.executable, *argv), dict(), "/")

main, *services = json.loads(sys.argv[1])
plan = LaunchPlan(spec("main", *main), tuple(spec("service%d" % n, *argv) for n, argv in enumerate(services)))
with launcher(describe) as supervisor:
    cause = supervisor.run(plan)
print(cause.message if cause else "well")
"""


def drive(*processes):
    """Run the first of the Python command lines as what trains, the others as services."""
    return run(DRIVER, json.dumps(processes))


def run(program, *arguments):
    """Run a Python program that has the launcher's modules."""
    env = {**os.environ, "PYTHONPATH": str(ENTRYPOINTS), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=env, capture_output=True, timeout=600, check=False)
