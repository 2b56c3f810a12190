"""Job steps: the ``srun`` that runs a program on one node of a Slurm job.

The standard input of ``srun`` is the only way to control the program. A signal to ``srun`` is none: at SIGTERM it has
every process of the step killed at once, and ``scancel --signal`` reaches each of them behind their launcher's back. At
the end of ``srun``, however it ends, the program's standard input ends, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Node:
    """A node of a job. ``component`` is its number among those of a heterogeneous job; None for any other job."""

    name: str
    component: int | None = None


def step_command(node: Node, name: str, command: Sequence[str]) -> tuple[str, ...]:
    """Return the command of a step: ``command`` once on ``node``, with the standard streams of ``srun``.

    The step has all that the job has on the node, and shares it with other steps.
    """
    return (
        "srun",
        *(() if node.component is None else (f"--het-group={node.component}",)),
        f"--job-name={name}",
        "--nodes=1",
        "--ntasks=1",
        f"--nodelist={node.name}",
        # Not only the resources that no other step has: those of a job are those of its hosts.
        "--overlap",
        "--mem=0",
        # srun warns of binding where nothing binds processes, Slurm's own support of MPI would give the program the
        # variables of a rank, and srun reports how it ended by its exit code, and by a text that no log needs.
        "--cpu-bind=none",
        "--mpi=none",
        "--export=ALL",
        "--chdir=/",
        "--quiet",
        *command,
    )
