"""All or nothing: the hosts of a job run together and end together. Effects are handed in."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scriptmode.platforms.local.hosts import Host

#: How often a request to stop is looked for; the end of a host is noticed at once.
POLL_SECONDS = 0.05
#: What the other hosts are given after one failed; they learn of it from their runtime, too.
FAILURE_GRACE_SECONDS = 1.5


@dataclass(frozen=True)
class Outcome:
    """How a job ends: its final secondary status, and why when that is ``Failed``."""

    secondary: str
    reason: str = ""


@dataclass(frozen=True)
class SupervisionHooks:
    """What training needs of the world outside the hosts."""

    #: Returns when a host may have ended, after the given seconds at the latest.
    wait: Callable[[float], None]
    stop_requested: Callable[[], bool]
    #: Told once when the hosts are about to be stopped, with the message for whoever watches the job.
    on_stopping: Callable[[str], None]
    #: Says why a host failed, from its name and exit code (``-n`` for signal n).
    describe_failure: Callable[[str, int], str]
    #: Says why the hosts' inputs cannot be served any more; "" as long as they can.
    input_failure: Callable[[], str] = lambda: ""
    clock: Callable[[], float] = time.monotonic


def supervise(hosts: Sequence[Host], max_runtime: float, stop_grace: float, hooks: SupervisionHooks) -> Outcome:
    """Watch started hosts until all ended; the first failure, a request to stop or the time limit ends them all."""
    deadline = hooks.clock() + max_runtime
    while True:
        codes = {host.name: host.poll() for host in hosts}
        # Asked after the hosts: what a broken input made of them is not the cause, however well they ended.
        if failure := hooks.input_failure():
            end_hosts(hosts, FAILURE_GRACE_SECONDS, hooks)
            return Outcome("Failed", failure)
        failed = next(((name, code) for name, code in codes.items() if code), None)
        if failed:
            reason = hooks.describe_failure(*failed)
            end_hosts(hosts, FAILURE_GRACE_SECONDS, hooks)
            return Outcome("Failed", reason)
        if all(code == 0 for code in codes.values()):
            return Outcome("Completed")
        if hooks.stop_requested():
            hooks.on_stopping("Stopping: a stop was asked for")
            end_hosts(hosts, stop_grace, hooks)
            return Outcome("Stopped")
        left = deadline - hooks.clock()
        if left <= 0:
            hooks.on_stopping(f"Stopping: the job ran for MaxRuntimeInSeconds, {max_runtime:g} s")
            end_hosts(hosts, stop_grace, hooks)
            return Outcome("MaxRuntimeExceeded")
        hooks.wait(min(POLL_SECONDS, left))


def end_hosts(hosts: Sequence[Host], grace: float, hooks: SupervisionHooks) -> None:
    """Ask every host to end, and make those end that have not after ``grace`` seconds."""
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
