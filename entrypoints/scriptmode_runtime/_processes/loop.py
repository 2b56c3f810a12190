"""The event loop of a launcher, in one thread: descriptors, signals, deadlines."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable
from typing import Protocol

#: Signals that stop the job.
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
#: Signals for the script, such as a scheduler's notice that the job's time ends: sbatch --signal=USR1@60.
FORWARDED = (signal.SIGUSR1, signal.SIGUSR2)
HANDLED = (*STOPPING, *FORWARDED)


class Ticker(Protocol):
    """An object with deadlines of its own, on the loop's clock."""

    def deadline(self) -> float | None:
        """Return when `tick` is due next; None for never."""

    def tick(self) -> None:
        """Handle the deadlines that have passed."""


class Loop:
    """A selector whose keys' data are callbacks, `Ticker` objects, and the signals a launcher handles."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.selector = selectors.DefaultSelector()
        self.tickers: list[Ticker] = []
        #: A pipe with the numbers of signals, once they are handled.
        self._wakeup: tuple[int, ...] = ()
        self._earlier_wakeup = -1

    def __enter__(self) -> Loop:  # noqa: PYI034 - Self is not in Python 3.9's typing
        return self

    def __exit__(self, *_: object) -> None:
        """Close the descriptors. The handlers stay: a late signal must not keep the report from being written."""
        self.selector.close()
        if self._wakeup:
            signal.set_wakeup_fd(self._earlier_wakeup)
        for descriptor in self._wakeup:
            os.close(descriptor)

    def handle_signals(self, on_signal: Callable[[int], None]) -> None:
        """Start to handle signals; those that were blocked until now are delivered at once."""
        self._wakeup = os.pipe()
        for descriptor in self._wakeup:
            os.set_blocking(descriptor, False)
        self._earlier_wakeup = signal.set_wakeup_fd(self._wakeup[1], warn_on_full_buffer=False)
        for number in (*HANDLED, signal.SIGCHLD):
            if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGCHLD:
                signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED)

        def on_wakeup() -> None:
            for number in os.read(self._wakeup[0], 512):
                on_signal(number)

        self.selector.register(self._wakeup[0], selectors.EVENT_READ, on_wakeup)

    def until(self, reached: Callable[[], bool], deadline: float | None, poll: float | None = None) -> bool:
        """Handle events until ``reached``, which is called after each, and every ``poll`` seconds.

        Return False when the deadline passed before.
        """
        while not reached():
            if deadline is not None and self.clock() >= deadline:
                return False
            self.once(deadline if poll is None else self.clock() + poll)
        return True

    def once(self, deadline: float | None) -> None:
        """Handle the next events, or return at ``deadline``."""
        sources = (deadline, *(ticker.deadline() for ticker in self.tickers))
        soonest = min((due for due in sources if due is not None), default=None)
        timeout = None if soonest is None else max(0.0, soonest - self.clock())
        events = self.selector.select(timeout)
        # Messages of other hosts before signals: a failure here may be the consequence of theirs.
        for key, _ in sorted(events, key=lambda event: event[0].fd in self._wakeup):
            # An earlier event may have closed it, and another file may have its number now.
            current = self.selector.get_map().get(key.fd)
            if current and current.fileobj is key.fileobj:
                current.data()
        for ticker in self.tickers:
            ticker.tick()
