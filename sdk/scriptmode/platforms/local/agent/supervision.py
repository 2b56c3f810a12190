"""Supervision of the hosts of a job while they train: all or nothing.

All hosts were started. They run until the first of these events: each host ended with 0 (Completed); a host failed or
an input cannot be served (Failed); a stop was requested (Stopped); the time limit passed (MaxRuntimeExceeded). In all
but the first case every host gets SIGTERM, one common grace period, then SIGKILL. The grace period is the job's after
a stop or the time limit, and `FAILURE_GRACE_SECONDS` after a failure. Effects and the clock are passed as hooks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scriptmode.failure import Failure
    from scriptmode.platforms.local.hosts import Host

#: Interval of checking for a request to stop; the end of a host wakes the agent at once.
POLL_SECONDS = 0.05
#: Grace period of the other hosts after one failed; their runtime tells them of the failure, too.
FAILURE_GRACE_SECONDS = 1.5


@dataclass(frozen=True)
class Outcome:
    """The end of a job: its final secondary status, and the reason and the failure when that is ``Failed``."""

    secondary: str
    reason: str = ""
    failure: Failure | None = None

    @classmethod
    def failed(cls, kind: str, failure: Failure) -> Outcome:
        """Return the end of a job by a failure outside the script; ``kind`` is the service's name of its kind."""
        return cls("Failed", "\n".join(filter(None, (f"{kind}: {failure.cause}", failure.traceback))), failure)


@dataclass(frozen=True)
class SupervisionHooks:
    """Callbacks through which `supervise` waits and asks for everything outside the hosts."""

    #: Wait until a host may have ended, for the given seconds at most.
    wait: Callable[[float], None]
    stop_requested: Callable[[], bool]
    #: Called once before the hosts are stopped, with the message for clients that follow the job.
    on_stopping: Callable[[str], None]
    #: Return the outcome of a job whose host failed, from its name and exit code (``-n`` for signal n).
    describe_failure: Callable[[str, int], Outcome]
    #: Return why the hosts' inputs cannot be served any more; None while they can.
    input_failure: Callable[[], Failure | None] = lambda: None
    clock: Callable[[], float] = time.monotonic


def supervise(hosts: Sequence[Host], max_runtime: float, stop_grace: float, hooks: SupervisionHooks) -> Outcome:
    """Wait until all started hosts ended; end all of them at the first failure, request to stop or the time limit."""
    deadline = hooks.clock() + max_runtime
    while True:
        codes = {host.name: host.poll() for host in hosts}
        # Checked after the hosts were polled: when an input broke, that is the cause, however the hosts ended.
        if failure := hooks.input_failure():
            end_hosts(hosts, FAILURE_GRACE_SECONDS, hooks)
            return Outcome.failed("ClientError", failure)
        failed = next(((name, code) for name, code in codes.items() if code), None)
        if failed:
            outcome = hooks.describe_failure(*failed)
            end_hosts(hosts, FAILURE_GRACE_SECONDS, hooks)
            return outcome
        if all(code == 0 for code in codes.values()):
            return Outcome("Completed")
        if hooks.stop_requested():
            hooks.on_stopping("Stopping: a stop was requested")
            end_hosts(hosts, stop_grace, hooks)
            return Outcome("Stopped")
        left = deadline - hooks.clock()
        if left <= 0:
            hooks.on_stopping(f"Stopping: the job ran for MaxRuntimeInSeconds, {max_runtime:g} s")
            end_hosts(hosts, stop_grace, hooks)
            return Outcome("MaxRuntimeExceeded")
        hooks.wait(min(POLL_SECONDS, left))


def end_hosts(hosts: Sequence[Host], grace: float, hooks: SupervisionHooks) -> None:
    """Send SIGTERM to every host, and SIGKILL to those that still run after ``grace`` seconds."""
    for host in hosts:
        host.terminate()
    deadline = hooks.clock() + grace
    while any(host.poll() is None for host in hosts):
        left = deadline - hooks.clock()
        if left <= 0:
            break
        hooks.wait(min(POLL_SECONDS, left))
    for host in hosts:
        host.kill()
