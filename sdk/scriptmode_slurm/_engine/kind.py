"""What the hosts of a Slurm cluster are."""

from scriptmode._core.spec.hosts import HostKind

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
