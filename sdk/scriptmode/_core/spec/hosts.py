"""The hosts of a job: their kinds, by instance type, and their groups; `Resources` has those of a job."""

from __future__ import annotations

from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple

from scriptmode.errors import invalid

#: The group of entry points that name engines of other packages.
GROUP = "scriptmode.engines"
_CORRECT = "correct the package that has the engine, or uninstall it"
#: Instance type whose hosts are plain processes of this machine.
LOCAL_PROCESS = "local_process"
#: Instance types whose hosts are containers of this machine, without and with GPUs (names of the SageMaker SDK).
LOCAL_GPU = "local_gpu"
LOCAL_CONTAINER = ("local", LOCAL_GPU)
#: The account of jobs on this machine, their Region if AWS's settings name none, and the role of those without one.
LOCAL_ACCOUNT = "000000000000"
LOCAL_REGION = "us-east-1"
LOCAL_ROLE = "scriptmode-local"
LOCAL_ROLE_ARN = f"arn:aws:iam::{LOCAL_ACCOUNT}:role/{LOCAL_ROLE}"
#: The Region of the client for whom a server, or the agent of a tuning job, creates jobs; "" elsewhere.
CLIENT_REGION: ContextVar[str] = ContextVar("CLIENT_REGION", default="")
_HOSTS = "scriptmode_local._hosts"
_THIS_MACHINE = "this machine"


@dataclass(frozen=True, eq=False)
class HostKind:
    """What the hosts of a job are, with all that code outside their engine must know of them.

    The object of an entry point of the group ``scriptmode.engines``, whose name is the instance type, is such a value.

    Attributes:
        title: What the hosts are, as plans show it.
        system: What they are part of, in words: ``this machine``, ``Slurm``.
        engine, agent_control: The engine that runs them, as ``module:class``, and what controls their jobs' agents.
        has_local_jobs: Whether a data directory of this machine has their jobs, wherever the hosts are.
        platform: The platform of their jobs, in the same form; by default that of hosts of this machine.
        is_scheduled: Whether a scheduler starts them on other machines, with disks and time limits of their own.
        pending_message: The first message of jobs that the engine queues before it starts them; "" without a queue.
        runs_images, uses_docker: Whether they can run an image, and whether this machine's Docker has to have it.
        runs_scripts: Whether they can run a script without an image, by an interpreter of this machine.
        takes_gpus: Whether ``NAME:gpu=N`` is the instance type of hosts with N GPUs each.
        checks: What ``scriptmode doctor --platform NAME`` runs, as ``module:mapping``: functions by names of checks.
            They return what was found, or raise an error of scriptmode with the next step.
        suffix: What else may follow the name and a colon, as help shows it: ``PARTITION``.
        other_names: What users call them instead, for the suggestion in an error: ``docker``.
    """

    title: str
    system: str = _THIS_MACHINE
    engine: str = f"{_HOSTS}.process_engine:ProcessEngine"
    agent_control: str = f"{_HOSTS}.local_agent:LocalAgent"
    platform: str = "scriptmode_local._service.service:LocalPlatform"
    has_local_jobs: bool = True
    is_scheduled: bool = False
    pending_message: str = ""
    runs_images: bool = False
    uses_docker: bool = False
    runs_scripts: bool = True
    takes_gpus: bool = False
    checks: str = ""
    suffix: str = ""
    other_names: tuple[str, ...] = ()

    PROCESS: ClassVar[HostKind]
    CONTAINER: ClassVar[HostKind]
    CLOUD: ClassVar[HostKind]

    @property
    def has_own_platform(self) -> bool:
        """Whether the platform of their jobs has settings of its own."""
        return self.platform != HostKind.platform

    @property
    def is_here(self) -> bool:
        """Whether the hosts have this machine's processors and memory."""
        return self.system == _THIS_MACHINE


HostKind.PROCESS = HostKind("processes of this machine", other_names=("process", "localhost"))
HostKind.CONTAINER = HostKind(
    "containers of this machine",
    engine=f"{_HOSTS}.container_engine:ContainerEngine",
    runs_images=True,
    uses_docker=True,
    runs_scripts=False,
    other_names=("docker", "container"),
)
HostKind.CLOUD = HostKind(
    "Amazon SageMaker",
    "Amazon SageMaker",
    # Of jobs of this machine whose engine's package was uninstalled.
    agent_control=f"{_HOSTS}.engine:AgentWithoutEngine",
    has_local_jobs=False,
    runs_images=True,
    runs_scripts=False,
)
_KINDS = {LOCAL_PROCESS: HostKind.PROCESS, **dict.fromkeys(LOCAL_CONTAINER, HostKind.CONTAINER)}


def instance_kind(instance_type: str) -> HostKind:
    """Return what the hosts of an instance type are; raise `SpecError` for a broken engine of another package."""
    name = instance_type.partition(":")[0]
    if kind := _KINDS.get(instance_type):
        return kind
    if name.startswith("ml."):
        return HostKind.CLOUD
    from scriptmode._core.machine.entry_points import find_entry_point

    value = find_entry_point(GROUP, name)
    return _load_kind(name, value) if value else HostKind.CLOUD


@cache
def _load_kind(name: str, value: str) -> HostKind:
    from pkgutil import resolve_name

    try:
        kind = resolve_name(value.partition("[")[0].strip())
    except Exception as error:
        raise invalid("instance_type", f"is {name!r}, whose engine {value} fails: {error!r}", _CORRECT) from error
    if not isinstance(kind, HostKind):
        raise invalid("instance_type", f"is {name!r}, and {value} is not a HostKind: {kind!r}", _CORRECT)
    return kind


class HostGroup(NamedTuple):
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
