"""Retrying calls that fail with a transient error: exponential backoff with jitter, up to a time limit.

A failed download is retried elsewhere: `scriptmode_local._data.s3_store` resumes an object where the connection broke.
"""

from __future__ import annotations

import math
import random
from typing import Callable, TypeVar

from scriptmode._core.machine.clock import Clock
from scriptmode.errors import TransientError

_T = TypeVar("_T")
#: Seconds of failures after which a warning is logged.
_WARNING_SECONDS = 5.0
#: A generator of its own: a program that seeded Python's for its training must find it unchanged.
_JITTER = random.Random()  # noqa: S311 - no secret
#: Default time limit in seconds: a laptop that slept, or a network that was restarted, is back by then.
RETRY_SECONDS = 15 * 60.0
_FIRST_BACKOFF, _LONGEST_BACKOFF = 0.5, 15.0


def retry(
    call: Callable[[], _T], clock: Clock, advice: str, *, limit: float = RETRY_SECONDS, until: float = math.inf
) -> _T:
    """Return what ``call()`` returns, called again after each `TransientError`; raise the last one at a limit.

    ``clock`` measures limits and backoff. ``limit`` is the seconds of failures in a row after which it gives up, with
    ``advice`` at the end of the message; ``until`` is a reading of the clock at which it gives up earlier, without.
    """
    began, backoff, warned = clock.now(), _FIRST_BACKOFF, False
    while True:
        try:
            return call()
        except TransientError as error:
            left = until - clock.now()
            if left <= 0:
                raise
            if clock.now() - began >= limit:
                raise TransientError(f"{error}; given up after {limit:.0f} s", advice) from error
            if not warned and clock.now() - began >= _WARNING_SECONDS:
                import logging

                warned = True
                logging.getLogger("scriptmode").warning("%s; still trying, for at most %.0f s", error, limit)
        # With jitter: clients that were refused together must not come back together.
        clock.sleep(min(left, backoff * _JITTER.uniform(0.5, 1.0)))
        backoff = min(2 * backoff, _LONGEST_BACKOFF)
