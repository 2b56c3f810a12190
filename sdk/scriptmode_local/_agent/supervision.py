"""Supervision of the hosts of a job while they train: all or nothing.

All hosts were started. They run until the first of these events: each host ended with 0 (Completed); a host failed or
an input cannot be served (Failed); a stop was requested (Stopped); a time limit passed (MaxRuntimeExceeded or
MaxWaitTimeExceeded). In all but the first case every host gets SIGTERM, one common grace period, then SIGKILL. The
grace period is the job's after a stop or a time limit, and `SHORT_GRACE_SECONDS` after a failure, or once a stop now
was requested. Effects and the clock are passed as hooks.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from scriptmode._core.spec.job_failure import Failure
from scriptmode_local._store.state import Outcome
from scriptmode_local._system import full_disk

if TYPE_CHECKING:
    from scriptmode_local._agent.host_link import LinkedHost
    from scriptmode_local._store.job_store import JobFolder

_Result = TypeVar("_Result")
#: Interval of checking for a request to stop; the end of a host wakes the agent at once.
POLL_SECONDS = 0.05
#: The same while the hosts train, whose ends wake the agents: training has the processors.
WATCH_SECONDS = 0.25
#: Grace period of a stop now, and of the other hosts after one failed, whose runtime tells them of the failure, too.
SHORT_GRACE_SECONDS = 1.5
#: Seconds that a host, which another one lost, has to end: an engine may tell of its end later than that of the other.
_LOST_SECONDS = 1.0
#: The message of a job that ends because of the other time limit.
WAITED = "Stopping: MaxWaitTimeInSeconds has passed since the job's creation"
#: The message of a stop without the job's grace period.
NOW = f"Stopping: a stop now was requested, SIGKILL {SHORT_GRACE_SECONDS:g} s after SIGTERM"
#: How a host ends that obeys the agent: SIGTERM, by itself or by a shell.
_OBEYED = (0, -signal.SIGTERM, 128 + signal.SIGTERM)
#: Seconds after its time limit when a host's agent ends its hosts by itself: the job's agent is stopped, or hangs.
OVERDUE_SECONDS = 3.0


def split_cause(reason: str) -> Failure:
    """Return a failure whose first line is the cause."""
    cause, _, rest = reason.partition("\n")
    return Failure(cause, traceback=rest)


def describe_error(error: Exception, folder: JobFolder) -> tuple[str, Failure]:
    """Return the kind and the failure of a job that an agent's own error ends."""
    if full_disk.is_full(error):
        return "ClientError", Failure(str(full_disk.full_disk_error(error, folder.path.parent.parent)))
    return "InternalServerError", Failure(f"{type(error).__name__}: {error}; see {folder.agent_log}")


class SupervisionHooks(NamedTuple):
    """Callbacks through which `supervise` waits and asks for everything outside the hosts."""

    #: Wait until a host may have ended, for the given seconds at most.
    wait: Callable[[float], None]
    stop_requested: Callable[[], bool]
    #: Called once when the hosts got SIGTERM, with the message for clients that follow the job.
    on_stopping: Callable[[str], None]
    #: Return the outcome of a job whose host failed, from its name and exit code (``-n`` for signal n).
    describe_failure: Callable[[str, int], Outcome]
    #: Return how the job ends because the hosts' inputs cannot be served, or the hosts were lost; None otherwise.
    find_failure: Callable[[], Outcome | None] = lambda: None
    #: Return whether a stop without the job's grace period was requested.
    stops_now: Callable[[], bool] = lambda: False
    clock: Callable[[], float] = time.monotonic


def supervise(
    hosts: Sequence[LinkedHost],
    max_runtime: float,
    stop_grace: float,
    hooks: SupervisionHooks,
    *,
    passed: float = 0.0,
    wait_left: float = float("inf"),
) -> Outcome:
    """Wait until all started hosts ended; end all of them at the first failure, request to stop or the time limit.

    ``passed``: the seconds of ``max_runtime`` that earlier runs of the job took; ``wait_left``: those that are left of
    MaxWaitTimeInSeconds.
    """
    deadline = hooks.clock() + min(max_runtime - passed, wait_left)
    while True:
        codes = {host.name: host.poll() for host in hosts}
        # Checked after the hosts were polled: when an input broke, that is the cause, however the hosts ended.
        if outcome := hooks.find_failure():
            end_hosts(hosts, SHORT_GRACE_SECONDS, hooks, lambda: None)
            return outcome
        failed = next(((name, code) for name, code in codes.items() if code), None)
        if failed:
            return end_hosts(hosts, SHORT_GRACE_SECONDS, hooks, partial(_describe_first, hosts, *failed, hooks))
        if all(code == 0 for code in codes.values()):
            return Outcome("Completed")
        if hooks.stop_requested():
            end_hosts(hosts, stop_grace, hooks, partial(hooks.on_stopping, "Stopping: a stop was requested"))
            return Outcome("Stopped")
        left = deadline - hooks.clock()
        if left <= 0:
            has_waited = wait_left < max_runtime - passed
            message = WAITED if has_waited else f"Stopping: the job ran for MaxRuntimeInSeconds, {max_runtime:g} s"
            end_hosts(hosts, stop_grace, hooks, partial(hooks.on_stopping, message))
            return Outcome("MaxWaitTimeExceeded" if has_waited else "MaxRuntimeExceeded")
        hooks.wait(min(WATCH_SECONDS, left))


def _describe_first(hosts: Sequence[LinkedHost], name: str, code: int, hooks: SupervisionHooks) -> Outcome:
    """Return how the job ends by the failure of a host; by that of the host which it lost, if that one ended itself."""
    outcome = hooks.describe_failure(name, code)
    failure = outcome.failure
    if failure is None or failure.process != "launcher":
        return outcome
    lost = next((host for host in hosts if host.name == failure.host != name), None)
    if lost is None:
        return outcome
    deadline = hooks.clock() + _LOST_SECONDS
    while lost.poll() is None and hooks.clock() < deadline:
        hooks.wait(POLL_SECONDS)
    lost_code = lost.poll()
    if lost_code is None or lost_code in _OBEYED:
        return outcome
    own = hooks.describe_failure(lost.name, lost_code)
    return own if own.failure and own.failure.host == lost.name else outcome


def end_hosts(
    hosts: Sequence[LinkedHost], grace: float, hooks: SupervisionHooks, meanwhile: Callable[[], _Result]
) -> _Result:
    """Send SIGTERM to every host, and SIGKILL to those that still run after ``grace`` seconds.

    Returns the result of ``meanwhile``, which may ask a scheduler that does not answer soon.
    """
    for host in hosts:
        host.terminate()
    begun = hooks.clock()
    result = meanwhile()
    while any(host.poll() is None for host in hosts):
        left = begun + (SHORT_GRACE_SECONDS if hooks.stops_now() else grace) - hooks.clock()
        if left <= 0:
            break
        hooks.wait(min(POLL_SECONDS, left))
    for host in hosts:
        host.kill()
    return result
