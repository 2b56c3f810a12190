"""Detects that no process of any host writes output any more, logs their stacks, and fails the job or continues.

States of a host's `HangDetector`: off (before `start` and after `stop`), active, silent, and reporting. Output makes it
active, `seconds` without output make it silent, and each change is reported to the first host. Once all hosts are
silent the first one makes every host report: it requests stacks, waits `ANSWER_SECONDS` for the answers, logs them and
is active again. The first host waits `_MARGIN_SECONDS` longer, so that the other hosts log theirs before it fails the
job.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from scriptmode_runtime import contract
from scriptmode_runtime._processes import stacks
from scriptmode_runtime._values.failure import LAUNCHER_FAILED, HostFailure

if TYPE_CHECKING:
    from scriptmode_runtime._peers.lead import Lead
    from scriptmode_runtime._peers.member import Member
    from scriptmode_runtime._values.cluster import Cluster

#: Seconds for the other hosts to log their stacks before the first one decides.
_MARGIN_SECONDS = 0.5
#: A check that comes this much later is of a host that was suspended.
_LATE_SECONDS = 1.0


class HangHooks(NamedTuple):
    """Callbacks through which the detector asks and reports."""

    #: Returns a number that grows with every output.
    output_count: Callable[[], int]
    #: Called with each text to log.
    on_report: Callable[[str], None]
    #: Called with the failure once all texts are logged.
    on_hang: Callable[[HostFailure], None] = lambda _cause: None


class HangDetector:
    """One host's detector; each host reports whether it is silent, and the first one decides."""

    def __init__(
        self,
        cluster: Cluster,
        peers: Lead | Member | None,
        clock: Callable[[], float],
        seconds: float,
        folder: str,
        hooks: HangHooks,
    ) -> None:
        self._cluster = cluster
        self._decides = cluster.leads or peers is None
        self._peers = peers
        self._clock = clock
        self._seconds = seconds
        self._folder = folder
        self._hooks = hooks
        self._last_count = hooks.output_count()
        self._since: float | None = None
        self._silent = False
        self._silent_hosts: set[str] = set()
        self._requests: dict[int, int] = {}
        #: The first process of any host that a signal has stopped, as reported to the first host.
        self._stopped = ""
        self._answer_at: float | None = None
        if peers:
            peers.handlers["silent"] = lambda host, message: self._record(host, silent=bool(message.get("silent")))
            peers.handlers["stopped"] = lambda _host, message: self._record_stopped(str(message.get("process")))
            peers.handlers["stacks"] = lambda _host, _message: self._request_stacks()

    def start(self) -> None:
        """Start to watch the output: the processes were started."""
        self._since = self._clock()

    def stop(self) -> None:
        """Stop to watch the output: the processes are being stopped."""
        self._since = self._answer_at = None

    def deadline(self) -> float | None:
        """Return when `tick` is due next."""
        if self._answer_at is not None or self._since is None:
            return self._answer_at
        return None if self._silent else self._since + self._seconds

    def tick(self) -> None:
        """Check for output, or log the stacks that were requested."""
        now = self._clock()
        if self._answer_at is not None:
            if now >= self._answer_at:
                self._answer_at = None
                self._report()
        elif self._since is not None:
            if self._hooks.output_count() != self._last_count:
                self._last_count, self._since = self._hooks.output_count(), now
                self._set_silent(silent=False)
            elif now - self._since >= self._seconds + _LATE_SECONDS:
                self._since = now
            elif now - self._since >= self._seconds:
                self._set_silent(silent=True)

    def _set_silent(self, *, silent: bool) -> None:
        if silent == self._silent:
            return
        self._silent = silent
        if self._decides or self._peers is None:  # the latter is implied; it is for the type checker
            self._record(self._cluster.this.name, silent=silent)
        else:
            self._peers.send(self._cluster.lead.name, type="silent", silent=silent)

    def _record(self, host: str, *, silent: bool) -> None:
        (self._silent_hosts.add if silent else self._silent_hosts.discard)(host)
        expected = len(self._cluster.hosts) if self._peers else 1
        if len(self._silent_hosts) == expected and self._answer_at is None:
            for other in self._cluster.hosts if self._peers else ():
                if self._peers and other is not self._cluster.this:
                    self._peers.send(other.name, type="stacks")
            self._request_stacks()

    def _request_stacks(self) -> None:
        if self._since is not None:
            self._requests = stacks.request_stacks(self._folder)
            self._answer_at = (
                self._clock() + stacks.ANSWER_SECONDS + (_MARGIN_SECONDS if self._decides and self._peers else 0.0)
            )

    def _report(self) -> None:
        name, line = self._cluster.this.name, ""
        self._hooks.on_report(f"no output for {self._seconds:g} s; the processes of {name}:")
        for answer in stacks.read_stacks(self._folder, self._requests):
            self._hooks.on_report(f"{name} {answer.text}")
            line = line or (f"{answer.title} is at {answer.line}; " if answer.line else "")
            if answer.stopped:
                self._record_stopped(f"{name}, {answer.title}")
        self._since = self._clock()
        self._set_silent(silent=False)
        if self._decides:
            where = " of any host" if self._peers else ""
            message = (
                f"no output{where} for {self._seconds:g} s; {line}the log shows what every process does "
                f"({contract.HANG_ACTION_VARIABLE}=continue goes on)"
            )
            message = f"{self._stopped}; {message}" if self._stopped else f"{name}: {message}"
            self._hooks.on_hang(HostFailure(name, "launcher", LAUNCHER_FAILED, message))

    def _record_stopped(self, process: str) -> None:
        if self._decides:
            self._stopped = self._stopped or process
        elif self._peers:
            self._peers.send(self._cluster.lead.name, type="stopped", process=process)
