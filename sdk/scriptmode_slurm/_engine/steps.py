"""Job steps: the ``srun`` that runs a program on one node of a Slurm job, and the variables that it needs. Pure.

The standard input of ``srun`` is the only way to control the program. A signal to ``srun`` is none: at SIGTERM it has
every process of the step killed at once, and ``scancel --signal`` reaches each of them behind their launcher's back. At
the end of ``srun``, however it ends, the program's standard input ends, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_PREFIXES = ("SLURM_", "SLURMD_", "SRUN_", "SBATCH_", "SALLOC_", "PMI_", "PMI2_", "PMIX_")
#: What srun and a host need of a batch step's variables: the cluster, the job, its size, and the components of a
#: heterogeneous job. The others are defaults of its options, such as SLURM_NTASKS and SLURM_MEM_PER_CPU, which the
#: job's own options set.
_JOB = re.compile(
    r"SLURM_(CONF|CONF_SERVER|CLUSTERS|JOB_ID|JOBID|JOB_NUM_NODES|JWT|SACK_SOCKET|HET_SIZE|\w+_HET_GROUP_\d+)"
)


class Node(NamedTuple):
    """A node of a job, with the number of its component in a heterogeneous job, and its address if it was asked for."""

    name: str
    component: int | None = None
    address: str = ""


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


def step_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of srun: those of the batch step that name the job, and all that are not Slurm's."""
    return {name: value for name, value in variables.items() if _JOB.fullmatch(name) or not name.startswith(_PREFIXES)}


class Allocation(NamedTuple):
    """The nodes of a job, or of one component of a heterogeneous job, which has a job number of its own."""

    component: int | None
    job: int
    #: As Slurm lists them: ``n[1-2]``.
    nodes: str
    partition: str


def parse_allocations(variables: Mapping[str, str]) -> list[Allocation]:
    """Return the allocations of a batch step's job from its variables; none for a process outside of jobs."""
    components: Sequence[int | None] = range(int(variables.get("SLURM_HET_SIZE", 0))) or [None]
    allocations = []
    for component in components if "SLURM_JOB_ID" in variables else ():
        suffix = "" if component is None else f"_HET_GROUP_{component}"
        names = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_JOB_PARTITION")
        job, nodes, partition = (variables.get(name + suffix, "") for name in names)
        allocations.append(Allocation(component, int(job), nodes, partition))
    return allocations
