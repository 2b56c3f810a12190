"""Run plans on this host, each from the start of its processes to the end of the last one. One thread, one selector.

`Supervisor.run` has these phases. The first failure of any host ends each of them at once, and only the stop is left:

1. start the services, and reach the plan's waits ``before``;
2. start the trainers: the main process, then the side processes;
3. watch until all trainers have ended, and reach the plan's waits ``after``;
4. stop what still runs, relay the rest of the output.

What ends a run, and the exit code of the job:

===================================================  ===============================================
all trainers ended well, all waits were reached      0
a trainer failed, a service ended, a signal killed   its exit code, or 128 + the signal's number
a daemon of ``mpirun``
``mpirun`` failed, but no rank of it                 the same, unless another host fails or is lost
                                                     within a second: ``mpirun`` fails where it lost a
                                                     daemon, and may end before that host's loss is known
another host failed, or was lost                     that of the other host's failure
SIGTERM, SIGINT, SIGHUP or SIGQUIT to this launcher  128 + the signal's number
a wait was not reached in time, `Supervisor.abort`   1
===================================================  ===============================================

The stop depends on it. SIGKILL is sent to all that is left, one deadline after the first signal:

===================================================  ===============================================
the plan has completed                               SIGTERM to services and daemons; 1.5 s
a failure                                            SIGTERM to all at once; 1.5 s
a signal to a launcher                               that signal to trainers and daemons, SIGTERM to
                                                     services after the trainers of all hosts have
                                                     ended; the grace period of the platform
===================================================  ===============================================
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from scriptmode_runtime import contract
from scriptmode_runtime._processes import children, system
from scriptmode_runtime._processes.children import DAEMON, OPTIONAL, SERVICE, TRAINER, Child
from scriptmode_runtime._processes.loop import FORWARDED, STOPPING
from scriptmode_runtime._processes.process_tree import POLL_SECONDS
from scriptmode_runtime._values.failure import LAUNCHER_FAILED, SIGNALLED, HostFailure, how_ended
from scriptmode_runtime.plan import DAEMONS_ENDED, RANKS_SAVED, STOP_RANKS, TRAINERS_ENDED

if TYPE_CHECKING:
    from types import TracebackType

    from scriptmode_runtime._mpi.daemons import Daemons
    from scriptmode_runtime._peers.agreement import Agreement
    from scriptmode_runtime._processes.hang import HangDetector
    from scriptmode_runtime._processes.host_processes import HostProcesses
    from scriptmode_runtime.plan import LaunchPlan, ProcessSpec, Wait

#: Seconds between SIGTERM and SIGKILL once the job failed: every host ends within 3 seconds.
_FAILURE_GRACE = 1.5
#: Seconds between the end of ``mpirun`` for no failed rank and the decision that no other host is the reason.
_REASON_SECONDS = 1.0
#: Seconds to report the outcome to the other hosts.
_SETTLE = 2.0
#: Seconds between two checks of the ranks that are left.
_RANKS_POLL = 0.1


class _JobFailedError(Exception):
    """The job failed, which `Agreement.failure` has: the phases of a run that are left are skipped."""


class Supervisor:
    """The supervisor of one host, which runs plans one after the other until one fails."""

    def __init__(
        self,
        processes: HostProcesses,
        agreement: Agreement,
        describe: Callable[[ProcessSpec, int, str], HostFailure],
        *,
        stop_grace: float,
        daemons: Daemons | None = None,
        hang_detector: HangDetector | None = None,
    ) -> None:
        self._host = processes.host
        self._loop = processes.loop
        self._clock = processes.loop.clock
        self._processes = processes
        self._agreement = agreement
        self._describe = describe
        self._stop_grace = stop_grace
        self._daemons = daemons
        self._hang_detector = hang_detector
        #: Whether the plan has completed: its services then end without a failure.
        self._is_completed = False
        self._is_last = self._is_interrupted = False

    def __enter__(self) -> Supervisor:  # noqa: PYI034 - Self is not in Python 3.9's typing
        self._loop.handle_signals(self._on_signal)
        system.adopt_orphans()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill the processes that an error has left, and report it to the other hosts."""
        if error and self._agreement.failure is None:
            message = f"{self._host}: {type(error).__name__} in the runtime; its failure file has the traceback"
            self._fail(message)
            self.finish()
        self._is_completed = True
        self._agreement.complete()
        self._processes.kill()
        self._processes.reap_killed()
        self._processes.output.flush_log()

    def run(self, plan: LaunchPlan, *, last: bool = True) -> HostFailure | None:
        """Run one plan to its end; return the job's failure, after which no further plan may run.

        A signal to stop is ignored while the services of the ``last`` plan are stopped: the job has completed.
        """
        self._is_completed, self._is_last = False, last
        self._loop.once(self._clock())  # handle a signal that arrived between two plans
        with contextlib.suppress(_JobFailedError):
            self._until(lambda: True)
            children.write_files(plan.files)
            for spec in plan.services:
                self._processes.start(spec, OPTIONAL if spec.name in plan.optional else SERVICE)
            self._wait_for(plan.before)
            self._until(lambda: True)
            for spec in plan.trainers:
                self._processes.start(spec, TRAINER)
            if last and self._hang_detector:
                self._hang_detector.start()
            self._until(lambda: not self._processes.running(TRAINER))
            self._wait_for_reason()
            self._wait_for(plan.after)
        self._stop(last=last)
        return self._agreement.failure

    def abort(self, failure: HostFailure) -> None:
        """Stop the processes of a run that cannot continue, and fail the job on every host."""
        self._agreement.fail(failure)
        self._stop()

    def finish(self) -> HostFailure | None:
        """Wait until the other hosts know the outcome, with a deadline; return the failure that all hosts agree on."""
        self._loop.until(self._agreement.is_known, self._clock() + _SETTLE)
        return self._agreement.failure

    # --- phases of a run; each raises _JobFailedError once the job has failed

    def _until(self, reached: Callable[[], bool], deadline: float | None = None) -> bool:
        """Handle events until ``reached``; return False when the deadline passed before."""
        is_reached = self._loop.until(lambda: self._agreement.failure is not None or reached(), deadline)
        if self._agreement.failure is not None:
            raise _JobFailedError
        return is_reached

    def _wait_for_reason(self) -> None:
        """Fail the job by ``mpirun`` if it failed: once a rank, or another host, is the reason, or after a deadline."""
        failed = [child for child in self._processes.started if child.role == TRAINER and child.status]
        if failed:
            self._until(lambda: not any(map(self._lacks_reason, failed)), self._clock() + _REASON_SECONDS)
            self._check(lambda child: child in failed)

    def _wait_for(self, waits: Iterable[Wait]) -> None:
        """Wait for one event after the other; one that is not reached in time is a failure."""
        for wait in waits:
            deadline = None if wait.timeout is None else self._clock() + wait.timeout
            if not self._reach(wait.event, deadline):
                event = wait.event.replace("_", " ")
                self._fail(f"{self._host}: {event} was not reached in {wait.timeout:.0f} s")
                raise _JobFailedError

    def _reach(self, event: str, deadline: float | None) -> bool:
        """Wait until every host has reached an event; return False when the deadline passed before."""
        if event == DAEMONS_ENDED:
            if not self._until(lambda: not self._processes.running(DAEMON), deadline):
                return False
            self._check(lambda child: child.role == DAEMON and bool(child.status))
        self._agreement.announce(event)
        is_reached = self._until(lambda: self._agreement.reached(event), deadline)
        if event == DAEMONS_ENDED and is_reached:
            # The first host has the reports of all ranks now.
            self._check(lambda child: child.role == TRAINER and self._has_failed(child))
        return is_reached

    def _check(self, has_failed: Callable[[Child], bool]) -> None:
        """Fail the job by the first process that has failed, if any has."""
        failed = next(filter(has_failed, self._processes.started), None)
        if failed:
            self._agreement.fail(self._failure_by(failed))
            raise _JobFailedError

    # --- the stop

    def _stop(self, *, last: bool = True) -> None:
        """Stop all running processes: a signal, one shared deadline, SIGKILL; then reap them and relay their output."""
        if self._hang_detector:
            self._hang_detector.stop()
        failure = self._agreement.failure
        graceful = failure is not None and failure.graceful
        if self._daemons:
            self._daemons.hold_ranks = graceful
        # An mpirun that is busy with many ranks before it starts the first one does not obey a signal.
        is_empty = not self._agreement.has_peers and self._processes.lacks_ranks()
        deadline = self._clock() + (self._stop_grace if graceful and not is_empty else _FAILURE_GRACE)
        if failure is None:
            self._is_completed = True
            if last:
                self._agreement.complete()
            self._processes.signal(signal.SIGTERM, SERVICE, OPTIONAL, DAEMON)
        else:
            self._processes.stop_trainers(_signal_of(failure))
            if graceful:
                # A script may save state that the services of any host hold: they are stopped after it.
                self._wait_for_saving(deadline)
            self._processes.signal(signal.SIGTERM, SERVICE, OPTIONAL)
        self._loop.until(self._processes.have_ended, deadline, POLL_SECONDS)
        if failure and graceful:
            self._log_killed(_signal_of(failure))
        self._processes.kill()
        self._processes.reap_killed()
        self._processes.drain(log_killed=failure is None)

    def _wait_for_saving(self, deadline: float) -> None:
        """Wait until all processes of the trainers of every host have ended."""
        if self._daemons:
            self._wait_for_ranks(self._daemons, deadline)
        self._loop.until(self._processes.trainers_have_ended, deadline, POLL_SECONDS)
        self._agreement.announce(TRAINERS_ENDED)
        self._loop.until(lambda: self._agreement.reached_by_connected(TRAINERS_ENDED), deadline)

    def _wait_for_ranks(self, daemons: Daemons, deadline: float) -> None:
        """Wait until the ranks of every host have saved: the end of the first rank would end all others."""

        def saved() -> bool:
            starters = self._processes.rank_starters()
            return sum(len(children.mpi_ranks(starter.pid)) for starter in starters) <= daemons.held_count

        self._loop.until(saved, deadline, _RANKS_POLL)
        self._agreement.announce(RANKS_SAVED)
        self._loop.until(lambda: self._agreement.reached_by_connected(RANKS_SAVED), deadline)
        daemons.release_ranks()

    def _log_killed(self, number: int) -> None:
        """Log the processes that are killed at the deadline: files that they were saving are incomplete."""
        pids = self._processes.stopped_pids()
        if pids:
            which = f"process {pids[0]} is" if len(pids) == 1 else f"processes {', '.join(map(str, pids))} are"
            self._processes.output.log_line(
                f"{which} killed, not having ended within {self._stop_grace:g} s of "
                f"{signal.Signals(number).name} ({contract.STOP_GRACE_VARIABLE})"
            )

    # --- signals, and what they report

    def _on_signal(self, number: int) -> None:
        if number == signal.SIGCHLD:
            for child in self._processes.reap():
                self._check_exit(child)
                child.on_end(child.status or 0)
            return
        if number in FORWARDED:
            if self._is_last:
                self._processes.signal(number, TRAINER)
            return
        if number == signal.SIGINT:
            if self._is_interrupted and self._agreement.own_failure:
                self._processes.kill()
            self._is_interrupted = True
        message = f"{self._host}: stopped by {signal.Signals(number).name}"
        self._fail(message, SIGNALLED + number, graceful=True)

    def _check_exit(self, child: Child) -> None:
        """Check whether the end of a process is a failure: an exit code other than 0, or any end of a service.

        A daemon's exit code is for ``mpirun`` to interpret, but a signal that killed it is known here first.
        """
        status = child.status or 0
        self._processes.output.log_line(f"{child.spec.name} ended {how_ended(status)}")
        failed = {TRAINER: self._has_failed(child), SERVICE: True, OPTIONAL: False, DAEMON: status < 0}[child.role]
        if failed and self._agreement.failure is None and not self._is_completed and not self._lacks_reason(child):
            self._agreement.fail(self._failure_by(child))

    def _has_failed(self, child: Child) -> bool:
        """Return whether a trainer failed: ``mpirun`` can end with 0 after it killed its ranks."""
        ranks = child.spec.stop == STOP_RANKS and self._daemons
        return child.status != 0 or bool(ranks and not ranks.ranks_ended_well)

    def _lacks_reason(self, child: Child) -> bool:
        """Return whether ``mpirun`` failed by itself, with other hosts, and no rank is known to have failed."""
        if child.role != TRAINER or child.spec.stop != STOP_RANKS or not self._agreement.has_peers:
            return False
        # A signal that ended it is the reason.
        return (child.status or 0) > 0 and self._failure_by(child).process == child.spec.name

    def _failure_by(self, child: Child) -> HostFailure:
        return self._describe(child.spec, child.status or 0, child.source.tail.text())

    def _fail(self, message: str, exit_code: int = LAUNCHER_FAILED, *, graceful: bool = False) -> None:
        self._agreement.fail(HostFailure(self._host, "launcher", exit_code, message, graceful))


def _signal_of(failure: HostFailure) -> int:
    number = failure.exit_code - SIGNALLED
    return number if failure.graceful and number in STOPPING else signal.SIGTERM
