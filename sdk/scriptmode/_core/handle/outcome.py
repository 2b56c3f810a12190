"""The outcome of a training job: the wait for it, and its description, or an error with the next step."""

from __future__ import annotations

import math
from collections.abc import Callable

from scriptmode._core.aws.retry import retry
from scriptmode._core.platforms.registry import Platform
from scriptmode._core.spec.job_description import JobDescription, JobStatus
from scriptmode._core.text.messages import still_running
from scriptmode.errors import TransientError, WaitTimeoutError, invalid


def wait_for_end(
    name: str, platform: Platform, timeout: float | None, poll: float | None, *, show: Callable[..., None] | None = None
) -> JobDescription:
    """Wait until a job has ended; raise `WaitTimeoutError` after ``timeout`` seconds. Lost connections are retried."""
    for argument, seconds, least in (("timeout", timeout, 0), ("poll", poll, 0.001)):
        if seconds is not None and (not isinstance(seconds, (int, float)) or seconds < least):
            raise invalid(argument, f"is {seconds!r}", f"give seconds, at least {least}")
    clock = platform.clock
    begun = clock.now()
    deadline = math.inf if timeout is None else begun + timeout
    while True:
        try:
            description = retry(lambda: platform.describe(name), clock, still_running(name), until=deadline)
        except TransientError as error:
            if clock.now() < deadline:
                raise
            what = f"training job {name} could not be asked within {timeout} s ({error})"
            raise WaitTimeoutError(what, "it is still running: wait again") from error
        if show:
            show(description)
        if description.has_ended:
            return description
        if clock.now() >= deadline:
            what = f"training job {name} is {description.status} ({description.secondary}) after {timeout} s"
            raise WaitTimeoutError(what, "it is still running: wait again or stop it")
        # On this machine training has the processors: a wait adds a fiftieth of its time, half a second at most.
        pause = poll or max(platform.poll_seconds, min(0.5, (clock.now() - begun) / 50))
        clock.sleep(min(pause, deadline - clock.now()))


def raise_for_status(
    description: JobDescription, platform: Platform, source_dir: str = "", *, is_log_shown: bool = False
) -> None:
    """Raise the error of a job that failed or was stopped; ``is_log_shown``: the caller has seen the traceback."""
    if description.status is JobStatus.COMPLETED:
        return
    from scriptmode._core.handle.failed_job import failed_error, stopped_error

    if description.status is JobStatus.FAILED:
        raise failed_error(description, platform, source_dir, is_log_shown=is_log_shown)
    if description.status is JobStatus.STOPPED:
        raise stopped_error(description)
