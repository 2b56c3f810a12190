"""The hosts of a job: their kinds, by instance type, and their groups; `Resources` has those of a job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

#: Instance type whose hosts are plain processes of this machine.
LOCAL_PROCESS = "local_process"
#: Instance types whose hosts are containers of this machine, without and with GPUs (names of the SageMaker SDK).
LOCAL_GPU = "local_gpu"
LOCAL_CONTAINER = ("local", LOCAL_GPU)
#: Instance type whose hosts are nodes of a Slurm cluster; ``slurm:gpu`` names a partition.
SLURM = "slurm"
#: The account of jobs on this machine, their Region if AWS's settings name none, and the role of those without one.
LOCAL_ACCOUNT = "000000000000"
LOCAL_REGION = "us-east-1"
LOCAL_ROLE = "scriptmode-local"
LOCAL_ROLE_ARN = f"arn:aws:iam::{LOCAL_ACCOUNT}:role/{LOCAL_ROLE}"


class HostKind(Enum):
    """What the hosts of a job are: processes or containers of this machine, nodes of Slurm, or cloud instances.

    Each has what the rest of the code must know of it; only engines, and this module, compare kinds.

    Attributes:
        title: What the hosts are, as a plan says it.
        place: Where they are.
        is_local: Whether their jobs are in a data directory of this machine, and cost nothing.
        is_scheduled: Whether a scheduler starts them on other machines, with disks and time limits of their own.
        runs_images: Whether they can run an image.
        runs_scripts: Whether they can run a script without an image, by an interpreter of this machine.
    """

    PROCESS = ("processes of this machine", "this machine", True, False, False, True)
    CONTAINER = ("containers of this machine", "this machine", True, False, True, False)
    SLURM = ("nodes of a Slurm cluster", "Slurm", True, True, True, True)
    CLOUD = ("Amazon SageMaker", "Amazon SageMaker", False, False, True, False)

    def __init__(self, title: str, place: str, *facts: bool) -> None:
        self.title, self.place = title, place
        self.is_local, self.is_scheduled, self.runs_images, self.runs_scripts = facts


def instance_kind(instance_type: str) -> HostKind:
    """Return what the hosts of an instance type are."""
    if instance_type == LOCAL_PROCESS:
        return HostKind.PROCESS
    if instance_type in LOCAL_CONTAINER:
        return HostKind.CONTAINER
    return HostKind.SLURM if instance_type.partition(":")[0] == SLURM else HostKind.CLOUD


def slurm_partition(instance_type: str) -> str:
    """Return the partition that an instance type of Slurm names; "" for ``slurm``."""
    return instance_type.partition(":")[2]


@dataclass(frozen=True)
class HostGroup:
    """Hosts of one instance type, by their names."""

    name: str
    instance_type: str
    hosts: tuple[str, ...]


def host_kind(instance_types: Collection[str]) -> HostKind:
    """Return what the hosts of a job are, by the instance types of its groups."""
    kinds = set(map(instance_kind, instance_types))
    if len(kinds) == 1:
        return kinds.pop()
    return HostKind.CONTAINER if kinds == {HostKind.PROCESS, HostKind.CONTAINER} else HostKind.CLOUD
