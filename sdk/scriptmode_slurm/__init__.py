"""The engine of the instance type ``slurm``: each host of a job is a node of a Slurm cluster.

* ``platform``: `Slurm`, the platform object; ``settings``: what it is given.
* ``engine``: the engine; ``fleet``: the hosts of one job; ``agent``: where the agent of a job is, and why it ended.
* ``commands``: the commands of Slurm, and their output as values.
* ``batch_script``: the script that sbatch gets.
* ``problems``: failures of these commands and pending reasons, in their words.
* ``addresses``, ``steps``: what a host on a node is given, and the ``srun`` that starts it.
* ``checks``: those of scriptmode doctor.
"""

from scriptmode.core.spec.hosts import HostKind

__all__ = ["SLURM"]

#: The instance type is the name of the entry point; ``slurm:gpu`` names a partition, too.
SLURM = HostKind(
    "nodes of a Slurm cluster",
    "Slurm",
    engine="scriptmode_slurm.engine:SlurmEngine",
    agent="scriptmode_slurm.agent:SlurmAgent",
    platform="scriptmode_slurm.platform:Slurm",
    is_scheduled=True,
    runs_images=True,
    checks="scriptmode_slurm.checks:CHECKS",
)
