"""The protocol by which the agents of jobs are located and requeued, and the values that it returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from scriptmode_local._store.job_store import JobFolder
    from scriptmode_local._store.state import JobState


class StopReason(Enum):
    """Why an agent was told to end, or was ended, by something other than the job's folder."""

    USER = "user"
    TIME_LIMIT = "time limit"
    PREEMPTED = "preempted"
    NODE_LOST = "node lost"
    REQUEUED = "requeued"
    OUT_OF_MEMORY = "out of memory"
    #: SIGTERM to an agent of this machine, which goes down.
    TERMINATED = "terminated"
    #: SIGKILL to an agent that a scheduler started, which does not queue it again.
    KILLED = "killed"
    UNKNOWN = "unknown"


#: The final secondary status of a job whose agent was ended on purpose.
ENDED_ON_PURPOSE = {StopReason.USER: "Stopped", StopReason.TIME_LIMIT: "MaxRuntimeExceeded"}


@dataclass(frozen=True)
class Termination:
    """The end of an agent, or the request to end: its reason, and a sentence about it for the user ("" without one)."""

    reason: StopReason = StopReason.UNKNOWN
    text: str = ""


class Presence(Enum):
    """Whether a job has an agent."""

    #: It runs, or at least nothing says that it does not; a heartbeat tells whether it works.
    ALIVE = "alive"
    #: It has not started, and will: it waits in the engine's queue, for the first time or again.
    WAITING = "waiting"
    #: It has ended, or never started, and will not start.
    GONE = "gone"
    #: The engine does not answer.
    UNKNOWN = "unknown"


class AgentLocation(NamedTuple):
    """What an engine knows of the agent of a job that has not ended."""

    presence: Presence
    #: What it waits for, that it starts, or why the engine does not answer, as the message of the job's status; or "".
    message: str = ""
    #: Of an agent that is gone: what ended it.
    termination: Termination = Termination()
    #: Of a waiting agent: its position in the engine's queue, from 1 on, or 0 if unknown.
    position: int = 0
    #: Of a waiting agent: it waits for what will never happen, so the job is to end with ``message``.
    never_starts: bool = False


class AgentSignal(Enum):
    """What the agent of a job is to do, or is told."""

    #: End at once, and its hosts with it.
    KILL = "kill"
    #: Leave the engine's queue, if it waits there; one that runs goes on.
    WITHDRAW = "withdraw"
    #: Start once more; the agent, whose last call this is, asks for that. One that no scheduler starts runs the job
    #: again by itself, or leaves that to who finds it gone.
    REQUEUE = "requeue"
    #: The job has failed, as its state says, for the place where the engine shows its jobs; never raises an error.
    FAILED = "failed"
    #: The same of a job that was stopped.
    STOPPED = "stopped"


class AgentControl(Protocol):
    """The part of an engine that concerns started agents. It has no state: what it needs is in the job's folder."""

    def locate(self, folder: JobFolder, state: JobState) -> AgentLocation:
        """Return where the agent of a job is that has not ended; called twice a second while a job is followed."""

    def why_terminated(self, folder: JobFolder, *, was_signalled: bool) -> Termination | None:
        """Return why the agent, which calls this, or its hosts ended or got SIGTERM without a request in the folder.

        ``None`` where the engine did not end them. ``was_signalled``: the agent itself got a signal, not only hosts.
        """

    def signal(self, folder: JobFolder, what: AgentSignal) -> bool:
        """Tell the agent of a job; return whether it was found. All but KILL is for an engine with a queue.

        Raises `PlatformError` where the engine does not answer, or refuses it.
        """
