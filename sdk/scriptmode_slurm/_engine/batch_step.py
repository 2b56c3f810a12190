"""The batch step of a job, which starts the steps of its hosts, and then is the job's agent.

``python -m scriptmode_slurm._engine.batch_step <job folder> <host>...``: the agents of the hosts start while this
process imports the agent of the job, and wait for its first command.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from scriptmode.errors import PlatformError
from scriptmode_runtime._processes import forks
from scriptmode_slurm._engine import steps


def main(folder: str, *hosts: str) -> int:
    """Start the steps, and run the job's agent; return its exit code."""
    # The agent tries once more what fails, and tells the user.
    with suppress(PlatformError, OSError):
        steps.STARTED.set(steps.start_steps(folder, hosts, os.environ))
    from scriptmode_local._agent import agent_process

    return agent_process.main([agent_process.FOREGROUND, folder])


if __name__ == "__main__":
    forks.restart_without_threads("scriptmode_slurm._engine.batch_step")
    sys.exit(main(*sys.argv[1:]))
