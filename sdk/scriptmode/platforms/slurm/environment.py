"""Variables of Slurm that a job's steps need. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIXES = ("SLURM_", "SLURMD_", "SRUN_", "SBATCH_", "SALLOC_", "PMI_", "PMI2_", "PMIX_")
#: What srun and a host need of a batch step's variables: the cluster, the job, its size, and the components of a
#: heterogeneous job. The others are defaults of its options, such as SLURM_NTASKS and SLURM_MEM_PER_CPU, which the
#: job's own options set.
_JOB = re.compile(
    r"SLURM_(CONF|CONF_SERVER|CLUSTERS|JOB_ID|JOBID|JOB_NUM_NODES|JWT|SACK_SOCKET|HET_SIZE|\w+_HET_GROUP_\d+)"
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


def parse_allocations(variables: Mapping[str, str]) -> list[Allocation]:
    """Return the allocations of a batch step's job from its variables; none for a process outside of jobs."""
    components = range(int(variables.get("SLURM_HET_SIZE", 0)))
    if not components and "SLURM_JOB_ID" in variables:
        return [Allocation(None, int(variables["SLURM_JOB_ID"]), variables.get("SLURM_JOB_NODELIST", ""))]
    return [
        Allocation(
            number,
            int(variables[f"SLURM_JOB_ID_HET_GROUP_{number}"]),
            variables[f"SLURM_JOB_NODELIST_HET_GROUP_{number}"],
        )
        for number in components
    ]
