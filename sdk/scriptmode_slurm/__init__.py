"""The engine of the instance type ``slurm``, in `_engine`: each host of a job is a node of a Slurm cluster.

* ``platform``: `Slurm`, the platform object; ``settings``: what it is given; ``checks``: those of scriptmode doctor.
* ``kind``: `SLURM`, what the rest of the code knows of the hosts.
* ``engine``: the engine; ``fleet``: the hosts of one job; ``agent``: where the agent of a job is, and why it ended.
* ``commands``: Slurm's commands, and their output as values; ``problems``: failures and reasons, in their words.
* ``batch_script``: what sbatch gets; ``partitions``: where it may run; ``addresses``, ``steps``: what a host is
  given, and the ``srun`` that starts it; ``batch_step``: the program of the batch script.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scriptmode_slurm._engine.kind import SLURM

__all__ = ["SLURM"]


def __getattr__(name: str) -> Any:
    """Return `SLURM`, which the batch step of a job does not import before it starts the hosts."""
    if name != "SLURM":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from scriptmode_slurm._engine.kind import SLURM

    return SLURM
