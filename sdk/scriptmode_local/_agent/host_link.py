"""The job's agent's side of its connections to the agents of its hosts: commands out, events in, without threads.

`HostLink.poll` reads what has arrived and never blocks. An agent that ended without its last event, or that wrote
something else than events, is lost: its hosts are ended with it, so the job fails.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable

from scriptmode._core.spec.host_values import ChannelProgress
from scriptmode._core.spec.job_failure import Failure
from scriptmode_local._agent import host_messages
from scriptmode_local._agent.progress import sum_by_channel
from scriptmode_local._store.state import Outcome, failure_from_json
from scriptmode_runtime._processes.proc import ProcessIdentity
from scriptmode_runtime._values.failure import describe_exit_code

if TYPE_CHECKING:
    from scriptmode_local._hosts.fleet import StartedAgent

#: Seconds without an event after which an agent is lost, also on a busy machine.
SILENT_SECONDS = 60.0
#: Seconds without an event after which an agent that was told to end is killed; the job's agent ends what it ran then.
END_SECONDS = 15.0
#: The same until the first event: the import of the agent's modules from a busy file server, and what a scheduler does
#: before it starts a program, such as a prolog.
_FIRST_SECONDS = 300.0
#: Time between two polls that counts as silence at most: a job's agent that was stopped itself has to listen first.
_LONGEST_POLL_SECONDS = 1.0
#: Seconds between two looks at agents that were told to end, whose events wake the job's agent at once.
_POLL_SECONDS = 0.05
#: Seconds from the end of what an agent tells to the end of its process, which follows in milliseconds, and between two
#: looks at the process.
_ENDING_SECONDS, _ENDING_POLL_SECONDS = 5.0, 0.005
_KILLED = -9


@dataclass
class LinkedHost:
    """A host that was started, as the job's agent sees it: the agent of its machine starts and ends it."""

    name: str
    link: HostLink = field(repr=False)
    machine_failure: str = ""
    code: int | None = None
    #: Whether its agent ended it, because it had no time left.
    is_overdue: bool = False

    def poll(self) -> int | None:
        """Return the exit code once the host ended, ``-n`` for signal n, else None; never block."""
        return _KILLED if self.code is None and self.link.is_gone else self.code

    def terminate(self) -> None:
        """Send SIGTERM to ``train``."""
        self.link.send(do="terminate", host=self.name)

    def kill(self) -> None:
        """Kill every process of the host (SIGKILL)."""
        self.link.send(do="kill", host=self.name)


class HostLink:
    """The connection to one host's agent; ``log`` writes a line to a host's log, given the host's name and the line."""

    def __init__(self, started: StartedAgent, log: Callable[[str, str], None]) -> None:
        self.hosts = {name: LinkedHost(name, self) for name in started.hosts}
        #: What the agent waits for before its host can be prepared; "" once it does not.
        self.waits_for = "its machine" if started.waits else ""
        #: Whether the files of its hosts arrive by it.
        self.sends_files = started.waits
        #: Whether all inputs are in place.
        self.is_staged = False
        self.progress: list[ChannelProgress] = []
        #: The agent's process and those of its hosts, once these were started.
        self.processes: dict[str, ProcessIdentity] = {}
        #: Why the job fails.
        self.failure: Outcome | None = None
        #: How the agent was lost; "" while it was not.
        self.lost = ""
        #: Whether the last event arrived, and what it tells.
        self.is_finished = False
        self.misplaced = ""
        self._problems: list[str] = []
        self._closed_since: float | None = None
        #: Seconds since the last event, or since the start.
        self.silence = 0.0
        self._longest_silence = _FIRST_SECONDS
        self._polled = time.monotonic()
        self._process = started.process
        self._commands = started.commands
        self._reader = host_messages.MessageReader(started.events, "event")
        self._log = log

    @property
    def name(self) -> str:
        """The agent as text for messages."""
        return f"the agent of {', '.join(self.hosts)} (process {self._process.pid})"

    @property
    def descriptor(self) -> int:
        """The descriptor that can be read when events arrive; -1 after the last one."""
        return -1 if self.is_gone or self._reader.is_closed else self._reader.descriptor

    @property
    def is_gone(self) -> bool:
        """Whether the agent does not tell anything any more."""
        return self.is_finished or bool(self.lost)

    @property
    def is_ending(self) -> bool:
        """Whether the agent told everything, and its process has not ended yet."""
        return self.is_finished and self._process.poll() is None

    def send(self, **command: object) -> None:
        """Send a command; an agent that has ended is noticed by `poll`."""
        with suppress(BrokenPipeError):
            host_messages.send(self._commands, **command)

    def problems(self) -> list[str]:
        """Return what could not be ended, after the command ``end``; kill an agent that did not obey it."""
        if not self.is_gone:
            self._lose(f"did not end, nor answer for {END_SECONDS:g} s, and was killed")
        return [self.lost] if self.lost else self._problems

    def poll(self) -> None:
        """Handle the events that have arrived, and the end of the process; never block."""
        if self.is_gone:
            return
        # Before the events are read, so that all of an agent that ended are read.
        code = self._process.poll()
        try:
            now = time.monotonic()
            self.silence += min(now - self._polled, _LONGEST_POLL_SECONDS)
            self._polled = now
            events = self._reader.read()
            if events and not self._reader.is_flooded:
                # One that writes without pause does nothing else.
                self.silence, self._longest_silence = 0.0, SILENT_SECONDS
            for event in events:
                getattr(self, f"_on_{event.pop('event')}")(**event)
        except (host_messages.UnreadableMessageError, TypeError, ValueError) as error:
            self._lose(f"wrote a line that is not an event: {error}")
        if self.is_gone:
            return
        if self._reader.is_closed:
            self._closed_since = self._closed_since or time.monotonic()
        if what := self._describe_loss(code):
            self._lose(what)

    def _describe_loss(self, code: int | None) -> str:
        """Return how the agent was lost, which may have ended with ``code``; "" for one that answers."""
        if code is not None:
            return f"{'was killed by' if code < 0 else 'ended with'} {describe_exit_code(code)}"
        if self._closed_since and time.monotonic() - self._closed_since > _ENDING_SECONDS:
            return "closed its output, and was killed"
        if self.silence <= self._longest_silence:
            return ""
        # Its machine is lost, or it is stopped or hangs.
        what = "written events without pause" if self._reader.is_flooded else "not answered"
        return f"has {what} for {self._longest_silence:g} s, and was killed"

    def _lose(self, what: str) -> None:
        """Kill the agent, and fail the job unless it failed, or its hosts ended already and left all they wrote."""
        self._process.kill()
        self.lost = f"{self.name} {what}"
        have_ended = all(host.code is not None for host in self.hosts.values())
        if self.failure or (have_ended and not self.sends_files):
            return
        host = next(iter(self.hosts)) if len(self.hosts) == 1 else ""
        self.failure = Outcome.failed("InternalServerError", Failure(f"{self.lost}, and so were its hosts", host=host))

    def _on_waiting(self, message: str) -> None:
        self.waits_for = message

    def _on_staged(self) -> None:
        self.is_staged = True

    def _on_started(self, processes: Any) -> None:
        if unknown := processes.keys() - {*self.hosts, f"agent of {next(iter(self.hosts))}"}:
            raise ValueError(f"there is no process {min(unknown)!r}")
        self.processes = {name: ProcessIdentity(**fields) for name, fields in processes.items()}

    def _on_progress(self, channels: list[Any]) -> None:
        self.progress = [ChannelProgress(**fields) for fields in channels]

    def _on_alive(self) -> None:
        """Skip: any event ends the silence."""

    def _on_log(self, host: str, text: str) -> None:
        self._log(self._host(host).name, text)

    def _on_failed(self, kind: str, failure: Any) -> None:
        self.failure = self.failure or Outcome.failed(kind, failure_from_json(failure))

    def _on_ended(self, host: str, code: int, machine_failure: str, *, overdue: bool = False) -> None:
        ended = self._host(host)
        ended.code, ended.machine_failure, ended.is_overdue = code, machine_failure, overdue

    def _host(self, name: str) -> LinkedHost:
        if name not in self.hosts:
            raise ValueError(f"there is no host {name!r}")
        return self.hosts[name]

    def _on_finished(self, problems: list[str], misplaced: str) -> None:
        self.is_finished, self._problems, self.misplaced = True, problems, misplaced


class HostLinks:
    """The connections to all agents of a job's hosts."""

    def __init__(self, log: Callable[[str, str], None]) -> None:
        self._log = log
        self._links: list[HostLink] = []

    def connect(self, started: Iterable[StartedAgent]) -> None:
        """Connect to the agents, once they were started."""
        self._links = [HostLink(agent, self._log) for agent in started]

    @property
    def hosts(self) -> list[LinkedHost]:
        """All hosts."""
        return [host for link in self._links for host in link.hosts.values()]

    @property
    def descriptors(self) -> list[int]:
        """The descriptors that can be read when events arrive."""
        return [link.descriptor for link in self._links if link.descriptor >= 0]

    @property
    def waits_for(self) -> str:
        """What the first host waits for that cannot be prepared yet; "" for none."""
        waits = [link.waits_for for link in self._links if link.waits_for]
        return next((awaited for awaited in waits if awaited != host_messages.OTHER_HOSTS), waits[0] if waits else "")

    @property
    def is_staged(self) -> bool:
        """Whether the inputs of all hosts are in place."""
        return all(link.is_staged for link in self._links)

    @property
    def processes(self) -> dict[str, ProcessIdentity]:
        """The processes of the agents, and of the hosts that were started."""
        return {name: identity for link in self._links for name, identity in link.processes.items()}

    def failure(self) -> Outcome | None:
        """Return how the job ends because an agent reported a failure or was lost; None without either."""
        return next((link.failure for link in self._links if link.failure), None)

    def find_incomplete(self) -> Outcome | None:
        """Return how the job ends because files of its hosts did not arrive; None where all did."""
        return next((link.failure for link in self._links if link.sends_files and link.lost), None)

    def progress(self) -> list[ChannelProgress]:
        """Return the progress of each channel on all hosts together."""
        return sum_by_channel(part for link in self._links for part in link.progress)

    def is_lost(self) -> bool:
        """Return whether an agent was lost."""
        return any(link.lost for link in self._links)

    def send(self, command: str, **fields: object) -> None:
        """Send a command to every agent."""
        for link in self._links:
            link.send(do=command, **fields)

    def poll(self) -> None:
        """Handle the events that have arrived; never block."""
        for link in self._links:
            link.poll()

    def end(self, wait: Callable[[float], None]) -> list[str]:
        """Stop every agent with its hosts and mounts; return what could not be ended.

        ``wait`` waits for events, for the given seconds at most, and calls `poll`.
        """
        self.send("end")
        for link in self._links:
            link.silence = 0.0
        # One that removes many files sends signs of life meanwhile.
        while any(not link.is_gone and link.silence <= END_SECONDS for link in self._links):
            wait(_POLL_SECONDS)
        # One that runs in a step of Slurm is the client of it: killed now, the step would lose its exit code.
        deadline = time.monotonic() + _ENDING_SECONDS
        while any(link.is_ending for link in self._links) and time.monotonic() < deadline:
            wait(_ENDING_POLL_SECONDS)
        return [problem for link in self._links for problem in link.problems()]

    def misplaced(self) -> str:
        """Return what hosts wrote outside their sandboxes; "" for nothing."""
        return next((link.misplaced for link in self._links if link.misplaced), "")
