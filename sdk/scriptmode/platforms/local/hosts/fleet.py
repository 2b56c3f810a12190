"""How the hosts of a job are made: as processes or as containers, and what is done for all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from scriptmode.platforms import requested_hosts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scriptmode.platforms.local.hosts import Host
    from scriptmode.platforms.local.store.job_store import Job, JobFolder
    from scriptmode.platforms.opt_ml import Sandbox


class Fleet(Protocol):
    """All hosts of one job. The process that has it must have no threads."""

    #: What stands in the log of a job that leaves no model.
    no_model_message: str

    @property
    def sandboxes(self) -> Mapping[str, Sandbox]:
        """Every host's ``/opt/ml``, by its name, in order."""

    @property
    def no_mounts_reason(self) -> str:
        """Why the hosts do not see what the agent mounts in their sandboxes; "" where they do."""

    @property
    def mounts_file_systems(self) -> bool:
        """Whether the hosts see file systems by themselves."""

    def prepare(self) -> None:
        """Fill the sandboxes but for the channels; raise `DataError`, `ContainerError` or ``OSError``."""

    def has_image(self) -> bool:
        """Say whether what the hosts are made of is on this machine; raise `ContainerError`."""

    def pull_image(self) -> None:
        """Get what the hosts are made of, which may take long; raise `PlatformError`."""

    def create_hosts(self, environments: Mapping[str, Mapping[str, str]]) -> Sequence[Host]:
        """Make the hosts, none of them started, with their variables by their names."""

    def environment(self, sandbox: Sandbox) -> dict[str, str]:
        """Give a host's variables but for those that are every job's."""

    def find_disconnected(self) -> str:
        """Say which of the running or ended hosts is not to be reached any more, and why; "" where none is known."""

    def remove_hosts(self) -> list[str]:
        """Leave nothing of the hosts but their sandboxes, which are the caller's; say what could not be done."""

    def release(self) -> None:
        """Give back what was held for the hosts."""


def create_fleet(folder: JobFolder, job: Job, lock: int, inherited: Mapping[str, str]) -> Fleet:
    """Give the fleet that a job's instance types name. ``lock`` is the descriptor of the job's lock."""
    if requested_hosts.has_container_hosts(job.request):
        from scriptmode.platforms.local.hosts.container_fleet import ContainerFleet

        return ContainerFleet(folder, job, lock, inherited)
    from scriptmode.platforms.local.hosts.process_fleet import ProcessFleet

    return ProcessFleet(folder, job, inherited)
