"""``python -m scriptmode_slurm._engine <job folder> <host>...``: the batch step of a job.

The agents of the hosts start while the agent of the job, which this process is, imports its modules.
"""

import sys

from scriptmode_runtime._processes import forks
from scriptmode_slurm._engine import steps

if __name__ == "__main__":
    forks.restart_without_threads("scriptmode_slurm._engine")
    sys.exit(steps.run_batch_step(*sys.argv[1:]))
