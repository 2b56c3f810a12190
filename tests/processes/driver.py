"""A launcher of its own for a plan of any processes."""

import json
import os
import subprocess
import sys

from processes.launchers import ENTRYPOINTS

DRIVER = """
import json, sys
from scriptmode_runtime.failure import Failure
from scriptmode_runtime.plan import LaunchPlan, ProcessSpec
from scriptmode_runtime.supervisor import Supervisor

def describe(spec, status, output):
    return Failure("algo-1", spec.name, 1, f"{spec.name} {status}")

def spec(name, *argv):
    return ProcessSpec(name, (sys.executable, *argv), {}, "/")

with Supervisor("algo-1", describe, stop_grace=2.0) as supervisor:
    {setting}
    main, *services = json.loads(sys.argv[1])
    plan = LaunchPlan(spec("main", *main), tuple(spec(f"service{n}", *argv) for n, argv in enumerate(services)))
    cause = supervisor.run(plan)
print(cause.message if cause else "well")
"""


def drive(*processes, setting="pass", **kwargs):
    """Run the first of the Python command lines as what trains, the others as services; ``setting`` comes before."""
    env = {**os.environ, "PYTHONPATH": str(ENTRYPOINTS), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", DRIVER.replace("{setting}", setting), json.dumps(processes)]
    return subprocess.run(command, env=env, capture_output=True, timeout=60, check=False, **kwargs)
