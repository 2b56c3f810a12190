"""The protocols of all hosts of a job together: for the job's agent, and for the agent of the machine they run on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scriptmode.core.text.messages import Problem
    from scriptmode.data.staging import StagingArea
    from scriptmode.platforms.local.hosts import Host
    from scriptmode.platforms.local.hosts.started_agent import StartedAgent
    from scriptmode.platforms.opt_ml import Sandbox

    #: Runs the agent of a part of a fleet: it reads commands from the first descriptor and writes events to the second.
    Serve = Callable[["HostFleet", int, int], None]


class HostFleet(Protocol):
    """Hosts of one job on one machine, for the host's agent there, which must have no threads, because it forks."""

    @property
    def sandboxes(self) -> Mapping[str, Sandbox]:
        """The ``/opt/ml`` of every such host, by the host's name, in order."""

    @property
    def mount_obstacle(self) -> Problem | None:
        """Why the hosts do not see mounts that the agent makes in their sandboxes; ``None`` where they do."""

    @property
    def mounts_file_systems(self) -> bool:
        """Whether the hosts mount the directories of file systems by themselves."""

    @property
    def staging(self) -> StagingArea:
        """Where the inputs of these hosts are staged; no other agent uses the directory."""

    def create_hosts(self, environments: Mapping[str, Mapping[str, str]]) -> Sequence[Host]:
        """Create the hosts, not started; ``environments`` holds the variables of each by its name."""

    def environment(self, sandbox: Sandbox) -> dict[str, str]:
        """Return a host's variables, except for those of `job_variables`."""

    def find_misplaced_output(self) -> Problem | None:
        """Return what hosts without an ``/opt/ml`` of their own wrote to that of the machine; ``None`` without any."""

    def release_machine(self) -> None:
        """Release what the hosts shared with other jobs of the machine; they have ended."""


class Fleet(Protocol):
    """All hosts of one job, for the job's agent, which must have no threads, because it forks."""

    #: The line for the log of a job whose hosts left no model.
    no_model_message: str

    @property
    def sandboxes(self) -> Mapping[str, Sandbox]:
        """The ``/opt/ml`` of every host, by the host's name, in order."""

    def prepare(self) -> None:
        """Write the sandboxes, except for the channels; raise `DataError`, `ContainerError` or ``OSError``."""

    def has_image(self) -> bool:
        """Return whether the hosts' image is on this machine; raise `ContainerError`."""

    def pull_image(self) -> None:
        """Pull the hosts' image, which may take long; raise `PlatformError`."""

    def start_agents(self, serve: Serve) -> Sequence[StartedAgent]:
        """Start the hosts' agents, one for each machine, after `prepare`; ``serve`` is for those that are forked."""

    def find_disconnected(self) -> Problem | None:
        """Return which hosts lost their connection to the others, and why; ``None`` where none is known to."""

    def remove_hosts(self) -> list[str]:
        """Remove the hosts, and make the user own their sandboxes; return what failed."""

    def release(self) -> None:
        """Release what was reserved for the hosts, such as ports."""
