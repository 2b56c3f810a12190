"""The base class of an engine, which runs the hosts of one kind, and the choice of its implementation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from scriptmode._core.spec.hosts import HostKind, host_kind
from scriptmode.errors import PlatformError, UnreadableJobError
from scriptmode_local._hosts.agent_control import AgentControl, AgentLocation, Presence
from scriptmode_local._hosts.local_agent import LocalAgent

if TYPE_CHECKING:
    from scriptmode._core.spec.host_values import PlannedHost
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.spec.training_job import TrainingJobSpec
    from scriptmode._core.text.messages import Problem
    from scriptmode_local._hosts import HostSettings
    from scriptmode_local._hosts.fleet import Fleet
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobFolder
    from scriptmode_local._store.state import JobState
    from scriptmode_local._system.forked_tasks import Tasks


class Engine(LocalAgent, ABC):
    """All that depends on the kind of a job's hosts, from the specification to what a killed agent left behind.

    An engine has no state: what it needs of a job is in the job's folder. Jobs have an agent on this machine, unless
    an engine overrides what `LocalAgent` has.
    """

    @abstractmethod
    def complete(self, spec: TrainingJobSpec, settings: HostSettings) -> TrainingJobSpec:
        """Fill in the software of the hosts; raise `SpecError` or `PlatformError` where they cannot run the job."""

    def problems(self, job: JobRequest) -> Iterator[Problem]:  # noqa: ARG002
        """Yield what a request asks that the hosts do not have. Has no side effect."""
        return iter(())

    def settings(self, given: HostSettings) -> dict[str, object]:  # noqa: ARG002
        """Return the settings of this engine for the job's record; raise `SpecError` for wrong ones."""
        return {}

    @abstractmethod
    def plan(self, folder: JobFolder, job: Job, inherited: Mapping[str, str]) -> tuple[dict[str, PlannedHost], str]:
        """Return the environment of each host, and what a scheduler would be given as text; "" without one.

        Nothing is reserved or written; there is no such folder.
        """

    @abstractmethod
    def create_fleet(
        self, folder: JobFolder, job: Job, tasks: Tasks, inherited: Mapping[str, str], host: str = ""
    ) -> Fleet:
        """Return the hosts of a job that starts, for its agent; they may be fewer than asked.

        With ``host`` this one alone, which such a fleet has prepared, for its agent on its machine. Raises
        `PlatformError` or ``OSError`` where it cannot run there.
        """

    @abstractmethod
    def remove_outside_folder(self, folder: JobFolder, inherited: Mapping[str, str]) -> None:
        """Remove what a job whose agent is dead has outside its folder; raise `PlatformError`.

        Only an engine that needs the job's request reads it, because the file may be damaged.
        """


def find_kind(folder: JobFolder) -> HostKind:
    """Return what the hosts of a job are: from ``hosts.json``, or from its request where that is damaged."""
    try:
        # The request takes several times as long to read.
        return host_kind(folder.read_hosts().types)
    except UnreadableJobError:
        return folder.read_facts().kind


def absent_engine(folder: JobFolder) -> str:
    """Return which engine a job needs that is not installed, as text; "" for a job whose engine is there."""
    if find_kind(folder).has_local_jobs:
        return ""
    types = sorted(set(folder.read_hosts().types))
    return f"the engine of {', '.join(map(repr, types))} is not installed: install its package"


def find_engine(kind: HostKind) -> Engine:
    """Return the engine of a kind of hosts that the local platform runs; raise `PlatformError`."""
    engine: Engine = _make(kind.engine)
    return engine


def find_control(folder: JobFolder) -> AgentControl:
    """Return what controls the agent of a job, by default without the import of its engine; raise `PlatformError`."""
    control: AgentControl = _make(find_kind(folder).agent_control)
    return control


def _make(name: str) -> Any:
    try:
        return resolve_name(name)()
    except Exception as error:
        what = f"the engine {name} fails: {error!r}"
        raise PlatformError(what, "correct the package that has the engine, or uninstall it") from error


class AgentWithoutEngine(LocalAgent):
    """Control of an agent whose engine is not installed, which alone ends what the job has outside its folder."""

    def locate(self, folder: JobFolder, state: JobState) -> AgentLocation:
        """Return where the agent is, and nothing of one that is gone."""
        location = super().locate(folder, state)
        if location.presence is not Presence.GONE:
            return location
        return AgentLocation(Presence.UNKNOWN, f"its agent died, and {absent_engine(folder)}, which ends the job")
