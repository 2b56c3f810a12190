"""Runs a plan: starts, watches, forwards signals, stops, reaps. One thread, one selector; every wait has a deadline."""

from __future__ import annotations

import os
import selectors
import signal
import time
from typing import TYPE_CHECKING

from scriptmode_runtime import children, system
from scriptmode_runtime.outcome import LAUNCHER_FAILED, SIGNALLED, Cause, signal_name
from scriptmode_runtime.plan import TRAINERS_ENDED
from scriptmode_runtime.streams import Relay, Sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from scriptmode_runtime.children import Child
    from scriptmode_runtime.cluster import Cluster
    from scriptmode_runtime.peers import Peers
    from scriptmode_runtime.plan import LaunchPlan, ProcessSpec, Wait

#: Seconds between SIGTERM and SIGKILL once the job failed: every host is gone within 3 seconds.
_FAILURE_GRACE = 1.5
#: Seconds for output that processes other than the ended one still send.
_DRAIN = 0.3
#: Seconds for output the reader of this launcher does not take.
_FLUSH = 10.0
#: Seconds for the other hosts to be told.
_SETTLE = 2.0
#: Seconds of the platform's grace kept for killing, reaping and reporting, at most a fifth of it.
_MARGIN = 2.0
_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Supervisor:
    """Runs plans one after the other on this host, until one fails."""

    def __init__(
        self,
        host: str,
        describe: Callable[[ProcessSpec, int, str], Cause],
        *,
        stop_grace: float,
        output: int = 1,
        log: int = 2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._describe = describe
        self._grace = stop_grace - min(_MARGIN, stop_grace / 5)
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._sink = Sink(output)
        self._log = None if _same(output, log) else Sink(log)
        self._relay = Relay(self._selector, self._sink, clock)
        self._peers: Peers | None = None
        self._trainers: list[Child] = []
        self._services: list[Child] = []
        self._stopping = False
        self._over = False
        self._last = True
        self._wakeup: tuple[int, int] = (-1, -1)
        self._earlier_wakeup = -1
        self._own: Cause | None = None

    def __enter__(self) -> Supervisor:  # noqa: PYI034 - Self is not in Python 3.9's typing
        self._wakeup = os.pipe()
        for descriptor in self._wakeup:
            os.set_blocking(descriptor, False)
        self._earlier_wakeup = signal.set_wakeup_fd(self._wakeup[1], warn_on_full_buffer=False)
        for number in (*_STOPPING, signal.SIGCHLD):
            if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGCHLD:
                signal.signal(number, lambda *_: None)
        self._selector.register(self._wakeup[0], selectors.EVENT_READ, self._on_signals)
        system.adopt_orphans()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping = self._over = True
        try:
            for child in self._children():
                child.kill()
            self._pump_until(lambda: not self._children(), self._clock() + 1.0)
            self._pump_until(lambda: not (self._log and self._log.pending), self._clock() + _FLUSH)
        finally:
            self._close()

    @property
    def cause(self) -> Cause | None:
        """Why the job ended before its time: the first failure of any host, as far as it is known here."""
        return (self._peers and self._peers.cause) or self._own

    def join(self, cluster: Cluster, secret: bytes) -> None:
        """From now on tell the other hosts how it goes here, and hear of them; raises `ClusterError`."""
        from scriptmode_runtime.lead import Lead
        from scriptmode_runtime.member import Member

        side = Lead if cluster.leads else Member
        peers = side(cluster, secret, self._selector, self._clock)
        peers.start()
        self._peers = peers

    def say(self, text: str) -> None:
        """Write one line of the launcher's own: to stderr, between whole lines where that is the output too."""
        if self._log is None:
            self._relay.say(f"scriptmode: {text}")
        else:
            self._log.write(f"scriptmode: {text}\n".encode("utf-8", "replace"))
            if self._log.pending and self._log.descriptor not in self._selector.get_map():
                self._selector.register(self._log.descriptor, selectors.EVENT_WRITE, self._log_writable)

    def run(self, plan: LaunchPlan, *, last: bool = True) -> Cause | None:
        """Run one plan to its end; give why it failed, or why no further one may follow.

        A stop that comes while the ``last`` plan's services are ended comes too late: the job is done.
        """
        self._stopping = False
        self._last = last
        self._pump(self._clock())  # a stop that came in between
        _ = (
            self._reach(plan.before)
            and self._until(lambda: True)
            and self._start(plan)
            and self._until(lambda: not _running(self._trainers))
            and self._reach(plan.after)
        )
        self._end()
        return self.cause

    def abort(self, cause: Cause) -> None:
        """End what a run that could not go on left behind, and the job on every host."""
        self.fail(cause)
        self._end()

    def fail(self, cause: Cause) -> None:
        """Take ``cause`` as what ended the job, unless something ended it before; tell the other hosts."""
        if self._own is None and not self._over:
            self._own = cause
            if self._peers:
                self._peers.fail(cause)

    def finish(self) -> Cause | None:
        """Let the other hosts know, with a deadline; give the cause all hosts agree on."""
        peers = self._peers
        if peers:
            self._pump_until(lambda: peers.settled, self._clock() + _SETTLE)
        return self.cause

    # --- steps of a run

    def _reach(self, waits: Iterable[Wait]) -> bool:
        peers = self._peers
        for wait in waits:
            if peers is None:
                continue
            peers.announce(wait.event)
            deadline = None if wait.timeout is None else self._clock() + wait.timeout
            if not self._until(lambda event=wait.event: peers.reached(event), deadline):  # type: ignore[misc]
                if self.cause is None:
                    message = f"{self._host}: {wait.event.replace('_', ' ')} was not reached in {wait.timeout:.0f} s"
                    self.fail(Cause(self._host, "launcher", LAUNCHER_FAILED, message))
                return False
        return True

    def _start(self, plan: LaunchPlan) -> bool:
        for spec in plan.services:
            self._services.append(self._spawn(spec))
        for spec in (*([plan.main] if plan.main else []), *plan.beside):
            self._trainers.append(self._spawn(spec))
        return True

    def _spawn(self, spec: ProcessSpec) -> Child:
        child, output = children.start(spec)
        child.source = self._relay.add(output)
        self.say(f"{self._host} {spec.name} started, process {child.pid}")
        return child

    def _end(self) -> None:
        self._stop()
        self._drain()
        self._trainers, self._services = [], []

    def _stop(self) -> None:
        """Stop what still runs: SIGTERM, one shared deadline, SIGKILL, reap."""
        cause = self.cause
        graceful = cause is not None and cause.graceful
        deadline = self._clock() + (self._grace if graceful else _FAILURE_GRACE)
        if cause is None:
            self._stopping = True
            self._over = self._last
        if cause:
            for child in _running(self._trainers):
                child.signal(_signal_of(cause))
        if graceful:
            # A script may save what the services of any host hold: they go after it.
            self._await_trainers(deadline)
        for child in _running(self._services):
            child.signal(signal.SIGTERM)
        self._pump_until(lambda: not self._children(), deadline)
        for child in self._children():
            child.kill()
        self._pump_until(lambda: not self._children(), self._clock() + 1.0)

    def _await_trainers(self, deadline: float) -> None:
        peers = self._peers
        self._pump_until(lambda: not _running(self._trainers), deadline)
        if peers:
            peers.announce(TRAINERS_ENDED)
            self._pump_until(lambda: peers.reached(TRAINERS_ENDED) or peers.alone, deadline)

    def _drain(self) -> None:
        """Let the output of ended processes through, then end what they left behind."""
        self._pump_until(lambda: self._relay.idle, self._clock() + _DRAIN)
        self._pump_until(lambda: self._relay.flushed, self._clock() + _FLUSH)
        deadline = self._clock() + 1.0
        while self._clock() < deadline and _kill_orphans():
            self._pump(self._clock() + 0.01)
        self._pump_until(lambda: self._relay.idle, self._clock() + _DRAIN)

    # --- events

    def _until(self, reached: Callable[[], bool], deadline: float | None = None) -> bool:
        """Handle events until ``reached``; false when the job failed or the deadline passed before."""
        return self._pump_until(lambda: self.cause is not None or reached(), deadline) and self.cause is None

    def _pump_until(self, reached: Callable[[], bool], deadline: float | None) -> bool:
        while not reached():
            if deadline is not None and self._clock() >= deadline:
                return False
            self._pump(deadline)
        return True

    def _pump(self, deadline: float | None) -> None:
        """Handle what comes next, at the latest at ``deadline``."""
        sources = (deadline, self._relay.deadline(), self._peers.deadline() if self._peers else None)
        soonest = min((due for due in sources if due is not None), default=None)
        timeout = None if soonest is None else max(0.0, soonest - self._clock())
        events = self._selector.select(timeout)
        # Other hosts first: a failure here may be the consequence of theirs.
        for key, _ in sorted(events, key=lambda event: event[0].fd == self._wakeup[0]):
            if key.fileobj in self._selector.get_map():
                key.data()
        self._relay.tick(self._clock())
        if self._peers:
            self._peers.tick()

    def _log_writable(self) -> None:
        if self._log:
            self._log.flush()
            if not self._log.pending:
                self._selector.unregister(self._log.descriptor)

    def _on_signals(self) -> None:
        for number in os.read(self._wakeup[0], 512):
            if number == signal.SIGCHLD:
                self._reap()
            else:
                self._on_stop(number)

    def _on_stop(self, number: int) -> None:
        name = signal.Signals(number).name
        if self._own and self._own.graceful and number == signal.SIGINT:
            for child in self._children():  # asked twice
                child.kill()
        message = f"{self._host}: stopped by {name}"
        self.fail(Cause(self._host, "launcher", SIGNALLED + number, message, graceful=True))

    def _reap(self) -> None:
        ended = children.reap()
        for child in self._children():
            if child.pid in ended:
                child.status = ended[child.pid]
                if child.source:
                    self._relay.drain(child.source)
                self._judge(child)

    def _judge(self, child: Child) -> None:
        """Decide whether an end is a failure: not 0, or a service's while it is needed."""
        status = child.status or 0
        self.say(f"{self._host} {child.spec.name} {_how(status)}")
        early = child in self._services and not self._stopping
        if (status or early) and self.cause is None and not self._stopping:
            self.fail(self._describe(child.spec, status, child.source.tail.text() if child.source else ""))

    def _close(self) -> None:
        """Give back what was opened. Handlers stay: a late stop must not keep the report from being written."""
        self._relay.close()
        if self._peers:
            self._peers.close()
        self._selector.close()
        self._sink.close()
        if self._log:
            self._log.close()
        signal.set_wakeup_fd(self._earlier_wakeup)
        for descriptor in self._wakeup:
            os.close(descriptor)

    def _children(self) -> list[Child]:
        return _running([*self._trainers, *self._services])


def _running(children: Iterable[Child]) -> list[Child]:
    return [child for child in children if child.running]


def _same(output: int, log: int) -> bool:
    try:
        return os.path.sameopenfile(output, log)
    except OSError:  # one of them was closed by whoever started this process
        return False


def _kill_orphans() -> bool:
    """Kill all that is still below this process; tell whether there was anything."""
    children.reap()
    left = system.descendants(os.getpid()) if children.any_left() else []
    children.kill_all(left)
    return bool(left)


def _signal_of(cause: Cause) -> int:
    number = cause.exit_code - SIGNALLED
    return number if cause.graceful and number in _STOPPING else signal.SIGTERM


def _how(status: int) -> str:
    return f"ended by {signal_name(-status)}" if status < 0 else f"ended with exit code {status}"
