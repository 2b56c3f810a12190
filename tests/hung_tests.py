"""Names tests that take minutes while they run, and ends the process of one that its time limit does not end."""

from __future__ import annotations

import faulthandler
import os
import threading
import time

import pytest

#: Seconds after which a test is named, once, and again after each multiple of them.
NAMED_SECONDS = 300.0
#: Seconds that a test has to clean up after its time limit, which is an exception: code may catch it, and what cleans up
#: after it may wait for ever.
CLEANUP_SECONDS = 120.0


class HungTests:
    """A plugin of each process: those that run tests end themselves with all stacks, the one that reports names tests."""

    def __init__(self, config: pytest.Config, named_seconds: float = NAMED_SECONDS) -> None:
        self._config = config
        self._named_seconds = named_seconds
        self._stderr = os.dup(2)  # during a test this is pytest's
        self._running: dict[str, float] = {}
        self._ended = threading.Event()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        """Print the stacks of all threads and exit, where the time limit of the test ended nothing."""
        faulthandler.dump_traceback_later(_time_limit(item) + CLEANUP_SECONDS, file=self._stderr, exit=True)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def pytest_sessionstart(self) -> None:
        """Begin to look for tests that take long."""
        if "PYTEST_XDIST_WORKER" not in os.environ:
            threading.Thread(target=self._name_long_tests, daemon=True).start()

    def pytest_sessionfinish(self) -> None:
        """End that."""
        self._ended.set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note when a test began."""
        self._running[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Forget a test that ended."""
        self._running.pop(nodeid, None)

    def _name_long_tests(self) -> None:
        """Print a line for each test that runs for a multiple of the time."""
        named: dict[str, int] = {}
        while not self._ended.wait(min(10.0, self._named_seconds / 4)):
            for nodeid, started in list(self._running.items()):
                seconds = time.monotonic() - started
                times = int(seconds / self._named_seconds)
                if times > named.get(nodeid, 0):
                    named[nodeid] = times
                    self._config.get_terminal_writer().line(f"\nruns for {seconds:,.0f} s: {nodeid}", flush=True)


def _time_limit(item: pytest.Item) -> float:
    """Return the seconds that a test has."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if marker else item.config.getini("timeout"))
