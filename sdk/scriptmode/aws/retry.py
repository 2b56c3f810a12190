"""Trying again what fails for the moment: longer pauses each time, until patience ends."""

from __future__ import annotations

import logging
import math
import random
from typing import TYPE_CHECKING, Callable, TypeVar

from scriptmode.errors import TransientError

if TYPE_CHECKING:
    from scriptmode.clock import Clock

_T = TypeVar("_T")
_LOG = logging.getLogger("scriptmode")
#: Seconds of trouble after which whoever watches is told.
_SILENCE = 5.0
#: Of its own: a program that seeded Python's for its training must find it as it left it.
_CHANCE = random.Random()  # noqa: S311 - no secret
#: Seconds: a laptop that slept, or a network that is restarted, is back by then.
LIMIT = 15 * 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0


class Patience:
    """Makes calls again that fail with `TransientError`, for at most ``limit`` seconds without one that succeeds."""

    def __init__(self, clock: Clock, advice: str, limit: float = LIMIT) -> None:
        self._clock = clock
        self._advice = advice
        self._limit = limit

    def through(self, call: Callable[[], _T], *, until: float = math.inf) -> _T:
        """Give the call's result; raise its last `TransientError`, with the advice, when patience ended.

        It ends earlier when the clock reads ``until``; then without advice.
        """
        began, pause, told = self._clock.now(), _FIRST_PAUSE, False
        while True:
            try:
                return call()
            except TransientError as error:
                left = until - self._clock.now()
                if left <= 0:
                    raise
                if self._clock.now() - began >= self._limit:
                    raise TransientError(f"{error}; given up after {self._limit:.0f} s. {self._advice}") from error
                if not told and self._clock.now() - began >= _SILENCE:
                    told = True
                    _LOG.warning("%s; still trying, for at most %.0f s", error, self._limit)
            # Clients that were refused together must not come back together.
            self._clock.sleep(min(left, pause * _CHANCE.uniform(0.5, 1.0)))
            pause = min(2 * pause, _LONGEST_PAUSE)


def goes_on(name: str) -> str:
    """Say what to do about a job that can no longer be followed."""
    return f"Training job {name} goes on. Follow it again: scriptmode logs -f {name}"
