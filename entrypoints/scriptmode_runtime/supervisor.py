"""Run a plan: start its processes, watch them, forward signals, stop and reap. One thread, one selector.

`Supervisor.run` takes a plan through these steps, each of which ends at once where the job failed::

    services started -> `before` waits reached -> trainers started -> trainers ended -> `after` waits reached -> ended

"ended" is entered on every path: trainers are signalled first where the job failed or was stopped, then services;
SIGKILL follows after one shared deadline, then all children are reaped and their output is relayed. Signals (also
SIGCHLD) and messages of other hosts move a run on. The first failure is the job's: `fail` records it once and
reports it to the other hosts, and every wait returns. Bounded: each wait by its own deadline or by the life of the
other hosts (`peers`), a stop by the grace period, output by `_DRAIN` and `_FLUSH`.
"""

from __future__ import annotations

import selectors
import signal
import time
from typing import TYPE_CHECKING

from scriptmode_runtime import contract
from scriptmode_runtime.failure import LAUNCHER_FAILED, SIGNALLED, Failure, how_ended
from scriptmode_runtime.plan import DAEMONS_ENDED, PORT_OPEN, RANKS_SAVED, STOP_RANKS, TRAINERS_ENDED
from scriptmode_runtime.processes import children, system
from scriptmode_runtime.processes.loop import STOPPING, Loop
from scriptmode_runtime.processes.process_tree import POLL_SECONDS, ProcessTree
from scriptmode_runtime.processes.streams import Relay, Sink, same_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    from scriptmode_runtime.cluster import Cluster
    from scriptmode_runtime.mpi.daemons import Daemons, Done
    from scriptmode_runtime.peers.base import Peers, Times
    from scriptmode_runtime.plan import LaunchPlan, ProcessSpec, Wait
    from scriptmode_runtime.processes.children import Child
    from scriptmode_runtime.processes.hang import HangDetector
    from scriptmode_runtime.processes.loopback import LoopbackOnly

#: Seconds between SIGTERM and SIGKILL once the job failed: every host ends within 3 seconds.
_FAILURE_GRACE = 1.5
#: Seconds to read output that other processes of an ended one still write.
_DRAIN = 0.3
#: Seconds to wait for the reader of this launcher's output.
_FLUSH = 10.0
#: Seconds to report the outcome to the other hosts.
_SETTLE = 2.0
#: Seconds between two connections to a port.
_PORT_POLL = 0.02
#: Seconds between two checks of the ranks that are left.
_RANKS_POLL = 0.1
#: Roles of a child: its end ends the plan; it outlives the trainers; it belongs to a trainer on another host.
_TRAINER, _SERVICE, _DAEMON = "trainer", "service", "daemon"


class Supervisor:
    """The supervisor of one host, which runs plans one after the other until one fails."""

    def __init__(
        self,
        host: str,
        describe: Callable[[ProcessSpec, int, str], Failure],
        *,
        stop_grace: float,
        output: int = 1,
        log: int = 2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._describe = describe
        self._grace = stop_grace
        self._clock = clock
        self._loop = Loop(clock, self._on_signal)
        self._selector = self._loop.selector
        self._sink = Sink(output)
        self._log = None if same_file(output, log) else Sink(log)
        self._relay = Relay(self._selector, self._sink, clock)
        self._peers: Peers | None = None
        self._daemons: Daemons | None = None
        self._hang_detector: HangDetector | None = None
        self._loopback: LoopbackOnly | None = None
        self._started: list[Child] = []
        #: All processes of each trainer and daemon, for which a stop waits, also where the first process has ended.
        self._stopped: list[ProcessTree] = []
        self._loop.tickers.append(self._relay)
        self._stopping = False
        self._over = False
        self._last = True
        self._own_failure: Failure | None = None
        #: Whether each line of a process is prefixed with its host and name; mpirun tags the lines of its ranks itself.
        self.prefix_lines = False

    def __enter__(self) -> Supervisor:  # noqa: PYI034 - Self is not in Python 3.9's typing
        self._loop.start()
        system.adopt_orphans()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error and self._peers and self.failure is None:
            message = f"{self._host}: {type(error).__name__} in the runtime; its failure file has the traceback"
            self.fail(Failure(self._host, "launcher", LAUNCHER_FAILED, message))
            self.finish()
        self._stopping = self._over = True
        try:
            for child in self._running():
                child.kill()
            self._loop.until(lambda: not self._running(), self._clock() + 1.0)
            self._loop.until(lambda: not (self._log and self._log.pending), self._clock() + _FLUSH)
        finally:
            self._close()

    @property
    def has_peers(self) -> bool:
        """Whether this host is connected, or connecting, to other hosts."""
        return self._peers is not None

    @property
    def failure(self) -> Failure | None:
        """The first failure of any host that is known here; None as long as the job has not failed."""
        return (self._peers and self._peers.failure) or self._own_failure

    def join(
        self, cluster: Cluster, secret: bytes, times: Times | None = None, facts: Mapping[str, str] | None = None
    ) -> Peers:
        """Start the protocol with the other hosts; raises `ClusterError`."""
        from scriptmode_runtime.peers.lead import Lead
        from scriptmode_runtime.peers.member import Member

        side = Lead if cluster.leads else Member
        peers: Peers = side(cluster, secret, self._selector, self._clock, times, facts)
        peers.on_wait = self.log_line
        peers.start()
        self._peers = peers
        self._loop.tickers.append(peers)
        return peers

    def serve_daemon_requests(self, cluster: Cluster, path: str) -> Daemons:
        """Start to serve ``mpirun``: reports of its ranks, and requests to start its daemons here or on other hosts."""
        from scriptmode_runtime.mpi.daemons import Daemons
        from scriptmode_runtime.processes.orphaned_processes import OrphanedProcesses

        self._loop.tickers.append(OrphanedProcesses(lambda: self._started, self._clock))
        self._daemons = Daemons(cluster, self._peers, self._selector, self._clock, self._start_daemon)
        self._daemons.listen(path)
        return self._daemons

    def detect_hangs(
        self, cluster: Cluster, seconds: float, folder: str, *, fails: bool, hide: Callable[[str], str]
    ) -> None:
        """Start to detect ``seconds`` without output: then stacks are logged, and with ``fails`` the job fails."""
        from scriptmode_runtime.processes.hang import HangDetector

        self._hang_detector = HangDetector(
            cluster, self._peers, self._clock, seconds, folder, lambda: self._relay.chunks
        )
        self._hang_detector.on_report = lambda text: self.log_line(hide(text))
        self._loop.tickers.append(self._hang_detector)
        if fails:
            self._hang_detector.on_hang = self.fail

    def restrict_to_loopback(self, ports: Iterable[int]) -> None:
        """Start to refuse connections to these ports at all addresses of this machine except the loopback ones."""
        from scriptmode_runtime.processes.loopback import LoopbackOnly

        self._loopback = LoopbackOnly(ports, self._selector, self._clock)
        self._loop.tickers.append(self._loopback)
        if self._loopback.exposed:
            endpoints = ", ".join(self._loopback.exposed)
            self.log_line(f"{self._host}: TensorFlow's servers can be reached from other machines at {endpoints}")

    def log_line(self, text: str) -> None:
        """Log one line of the launcher itself to stderr, between whole lines where stderr is the output too."""
        if self._log is None:
            self._relay.write_line(f"scriptmode: {text}")
        else:
            self._log.write(f"scriptmode: {text}\n".encode("utf-8", "replace"))
            if self._log.pending and self._log.descriptor not in self._selector.get_map():
                self._selector.register(self._log.descriptor, selectors.EVENT_WRITE, self._log_writable)

    def run(self, plan: LaunchPlan, *, last: bool = True) -> Failure | None:
        """Run one plan to its end; return the job's failure, after which no further plan may run.

        A signal to stop is ignored while the services of the ``last`` plan are stopped: the job has completed.
        """
        self._stopping = False
        self._last = last
        self._loop.once(self._clock())  # handle a signal that arrived between two plans
        _ = (
            self._until(lambda: True)
            and self._start_services(plan)
            and self._wait_for_all(plan.before)
            and self._until(lambda: True)
            and self._start_trainers(plan)
            and self._until(lambda: not self._running(_TRAINER))
            and self._wait_for_all(plan.after)
        )
        self._end()
        return self.failure

    def abort(self, failure: Failure) -> None:
        """Stop the processes of a run that cannot continue, and fail the job on every host."""
        self.fail(failure)
        self._end()

    def fail(self, failure: Failure) -> None:
        """Record ``failure``, unless there was an earlier one, and report it to the other hosts."""
        if self._own_failure is None and not self._over:
            self._own_failure = failure
            if self._peers:
                self._peers.fail(failure)

    def finish(self) -> Failure | None:
        """Wait until the other hosts know the outcome, with a deadline; return the failure that all hosts agree on."""
        peers = self._peers
        if peers:
            self._loop.until(lambda: peers.finished, self._clock() + _SETTLE)
        return self.failure

    # --- steps of a run

    def _wait_for_all(self, waits: Iterable[Wait]) -> bool:
        return all(self._wait_for(wait) for wait in waits)

    def _wait_for(self, wait: Wait) -> bool:
        deadline = None if wait.timeout is None else self._clock() + wait.timeout
        peers, event = self._peers, wait.event
        if event == PORT_OPEN:
            from scriptmode_runtime.peers.connection import accepts_connections

            reached = self._until(lambda: accepts_connections(*wait.endpoint), deadline, _PORT_POLL)
            event = f"{event} at {wait.endpoint[0]}:{wait.endpoint[1]}"
        elif event == DAEMONS_ENDED:
            reached = self._until(lambda: not self._running(_DAEMON), deadline) and self._check_daemons()
            if reached and peers:
                peers.announce(event)
                # The first host then has the reports of all ranks.
                reached = self._until(lambda: peers.reached(event), deadline) and self._check_trainers()
        elif peers:
            peers.announce(event)
            reached = self._until(lambda: peers.reached(event), deadline)
        else:
            reached = True
        if not reached and self.failure is None:
            message = f"{self._host}: {event.replace('_', ' ')} was not reached in {wait.timeout:.0f} s"
            self.fail(Failure(self._host, "launcher", LAUNCHER_FAILED, message))
        return reached

    def _check_daemons(self) -> bool:
        for child in self._started:
            if child.role == _DAEMON and child.status:
                self._fail_with(child)
        return self.failure is None

    def _check_trainers(self) -> bool:
        for child in self._started:
            if child.role == _TRAINER and self._has_failed(child):
                self._fail_with(child)
        return self.failure is None

    def _has_failed(self, child: Child) -> bool:
        """Return whether a trainer failed: ``mpirun`` can end with 0 after it killed its ranks."""
        ranks = child.spec.stop == STOP_RANKS and self._daemons
        return child.status != 0 or bool(ranks and not ranks.ranks_ended_well)

    def _start_services(self, plan: LaunchPlan) -> bool:
        children.write_files(plan.files)
        for spec in plan.services:
            self._spawn(spec, _SERVICE)
        return True

    def _start_trainers(self, plan: LaunchPlan) -> bool:
        for spec in (*([plan.main] if plan.main else []), *plan.side_processes):
            self._spawn(spec, _TRAINER)
        if self._hang_detector and self._last:
            self._hang_detector.start()
        return True

    def _start_daemon(self, spec: ProcessSpec, done: Done) -> None:
        if self.failure or self._over:
            done(LAUNCHER_FAILED, f"{self._host}: the job has ended")
            return
        self._spawn(spec, _DAEMON).on_end = lambda status: done(status if status >= 0 else SIGNALLED - status, "")

    def _spawn(self, spec: ProcessSpec, role: str) -> Child:
        child, output = children.start(spec)
        self._started.append(child)
        child.role = role
        prefix = f"[{self._host} {spec.name}] " if self.prefix_lines and spec.name != "mpirun" else ""
        child.source = self._relay.add(output, prefix)
        self.log_line(f"{self._host} {spec.name} started, process {child.pid}")
        return child

    def _end(self) -> None:
        self._stop()
        self._drain()
        self._started = []
        self._stopped = []

    def _stop(self) -> None:
        """Stop all running processes: SIGTERM, one shared deadline, SIGKILL, reap."""
        if self._hang_detector:
            self._hang_detector.stop()
        failure = self.failure
        graceful = failure is not None and failure.graceful
        if self._daemons:
            self._daemons.hold_ranks = graceful
        deadline = self._clock() + (self._grace if graceful else _FAILURE_GRACE)
        if failure is None:
            self._stopping = True
            self._over = self._last
        ended = self._signal_trainers(_signal_of(failure)) if failure else lambda: True
        if graceful:
            # A script may save state that the services of any host hold: they are stopped after it.
            self._wait_for_trainers(ended, deadline)
        for child in self._running(_SERVICE, *(() if failure else (_DAEMON,))):
            child.signal(signal.SIGTERM)
        self._loop.until(lambda: not self._running() and ended(), deadline, POLL_SECONDS)
        if failure and graceful:
            self._log_killed(_signal_of(failure))
        self._kill()
        self._loop.until(lambda: not self._running(), self._clock() + 1.0)

    def _signal_trainers(self, number: int) -> Callable[[], bool]:
        """Signal trainers and daemons; return a function that returns whether all their processes have ended."""
        signalled = [child for child in self._started if child.role in (_TRAINER, _DAEMON)]
        self._stopped = [ProcessTree(child.pid, has_ended=not child.running) for child in signalled]
        for child, tree in zip(signalled, self._stopped):
            if child.running or tree.is_alive():
                child.signal(number)

        def ended() -> bool:
            if self._running(_TRAINER, _DAEMON):
                return False
            self._stopped = [tree for tree in self._stopped if tree.is_alive()]
            for tree in self._stopped:
                tree.signal_orphans(number)
            return not self._stopped

        return ended

    def _log_killed(self, number: int) -> None:
        """Log the processes that are killed at the deadline: files that they were saving are incomplete."""
        pids = sorted({pid for tree in self._stopped for pid in tree.pids()})
        if pids:
            which = f"process {pids[0]} is" if len(pids) == 1 else f"processes {', '.join(map(str, pids))} are"
            self.log_line(
                f"{self._host}: {which} killed, not having ended within {self._grace:g} s of "
                f"{signal.Signals(number).name} ({contract.STOP_GRACE_VARIABLE})"
            )

    def _kill(self) -> None:
        """Kill all processes that were started and still run."""
        for child in self._running():
            child.kill()
        for tree in self._stopped:
            children.kill_all(tree.pids())

    def _wait_for_trainers(self, ended: Callable[[], bool], deadline: float) -> None:
        peers = self._peers
        if self._daemons:
            self._wait_for_ranks(self._daemons, deadline)
        self._loop.until(ended, deadline, POLL_SECONDS)
        if peers:
            peers.announce(TRAINERS_ENDED)
            self._loop.until(lambda: peers.reached(TRAINERS_ENDED) or peers.disconnected, deadline)

    def _wait_for_ranks(self, daemons: Daemons, deadline: float) -> None:
        """Wait until the ranks of every host have saved: the end of the first rank would end all others."""
        peers = self._peers
        starters = [child for child in self._started if child.spec.stop == STOP_RANKS]

        def saved() -> bool:
            running = [child for child in starters if child.running]
            return sum(len(children.mpi_ranks(child.pid)) for child in running) <= daemons.held_count

        self._loop.until(saved, deadline, _RANKS_POLL)
        if peers:
            peers.announce(RANKS_SAVED)
            self._loop.until(lambda: peers.reached(RANKS_SAVED) or peers.disconnected, deadline)
        daemons.release_ranks()

    def _drain(self) -> None:
        """Relay the remaining output of ended processes, then kill their orphaned processes."""
        self._loop.until(lambda: self._relay.idle, self._clock() + _DRAIN)
        self._loop.until(lambda: self._relay.flushed, self._clock() + _FLUSH)
        deadline = self._clock() + 1.0
        while self._clock() < deadline and children.kill_orphans():
            self._loop.once(self._clock() + 0.01)
        self._loop.until(lambda: self._relay.idle, self._clock() + _DRAIN)

    # --- events

    def _until(self, reached: Callable[[], bool], deadline: float | None = None, poll: float | None = None) -> bool:
        """Handle events until ``reached``; return False when the job failed or the deadline passed before."""
        return self._loop.until(lambda: self.failure is not None or reached(), deadline, poll) and self.failure is None

    def _log_writable(self) -> None:
        if self._log:
            self._log.flush()
            if not self._log.pending:
                self._selector.unregister(self._log.descriptor)

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGCHLD:
            self._reap()
        else:
            self._on_stop(number)

    def _on_stop(self, number: int) -> None:
        name = signal.Signals(number).name
        if self._own_failure and self._own_failure.graceful and number == signal.SIGINT:
            self._kill()  # a second SIGINT
        message = f"{self._host}: stopped by {name}"
        self.fail(Failure(self._host, "launcher", SIGNALLED + number, message, graceful=True))

    def _reap(self) -> None:
        ended = children.reap()
        for child in self._running():
            if child.pid in ended:
                child.status = ended[child.pid]
                if child.source:
                    self._relay.drain(child.source)
                self._check_exit(child)
                child.on_end(child.status)

    def _check_exit(self, child: Child) -> None:
        """Check whether the end of a process is a failure: an exit code other than 0, or any end of a service.

        A daemon's exit code is for ``mpirun`` to interpret, but a signal that killed it is known here first.
        """
        status = child.status or 0
        self.log_line(f"{self._host} {child.spec.name} ended {how_ended(status)}")
        failed = {_TRAINER: self._has_failed(child), _SERVICE: True, _DAEMON: status < 0}[child.role]
        if failed and self.failure is None and not self._stopping:
            self._fail_with(child)

    def _fail_with(self, child: Child) -> None:
        self.fail(self._describe(child.spec, child.status or 0, child.source.tail.text() if child.source else ""))

    def _close(self) -> None:
        """Close everything that was opened."""
        self._relay.close()
        if self._daemons:
            self._daemons.close()
        if self._loopback:
            self._loopback.close()
        if self._peers:
            self._peers.close()
        self._loop.close()
        self._sink.close()
        if self._log:
            self._log.close()

    def _running(self, *roles: str) -> list[Child]:
        return [child for child in self._started if child.running and (not roles or child.role in roles)]


def _signal_of(failure: Failure) -> int:
    number = failure.exit_code - SIGNALLED
    return number if failure.graceful and number in STOPPING else signal.SIGTERM
