"""The engine of the instance type ``slurm``, in `_engine`: each host of a job is a node of a Slurm cluster.

* ``platform``: `Slurm`, the platform object; ``settings``: what it is given; ``checks``: those of scriptmode doctor.
* ``engine``: the engine; ``fleet``: the hosts of one job; ``agent``: where the agent of a job is, and why it ended.
* ``commands``: Slurm's commands, and their output as values; ``problems``: failures and reasons, in their words.
* ``batch_script``: what sbatch gets; ``partitions``: where it may run; ``addresses``, ``steps``: what a host is
  given, and the ``srun`` that starts it.
"""

from scriptmode._core.spec.hosts import HostKind

__all__ = ["SLURM"]

#: The instance type is the name of the entry point; ``slurm:gpu`` names a partition, too.
SLURM = HostKind(
    "nodes of a Slurm cluster",
    "Slurm",
    engine="scriptmode_slurm._engine.engine:SlurmEngine",
    agent="scriptmode_slurm._engine.agent:SlurmAgent",
    platform="scriptmode_slurm._engine.platform:Slurm",
    is_scheduled=True,
    pending_message="Waiting in Slurm's queue",
    suffix="PARTITION",
    other_names=("sbatch", "srun"),
    checks="scriptmode_slurm._engine.checks:CHECKS",
)
