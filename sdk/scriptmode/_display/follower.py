"""Following a job: reads its log as it comes, and draws snapshots of it into a live view twice a second.

Two threads share one queue of log lines::

    caller's thread   platform.log_events -> _pending                    until the log ends
    drawing thread    _pending -> Collector -> JobSnapshot -> LiveView.draw    every DRAW_SECONDS, until _finished

The caller's thread reads, so that Ctrl-C interrupts the reading. It also draws when `_MOST_PENDING`
characters wait, which bounds the queue and slows the reading of a long old log down to the speed of the terminal.
Snapshots are made and drawn under one lock. An error of the drawing thread is stored, and raised in the caller's thread
at the next line or the end. At the end, or after an error, `LiveView.close` draws the last snapshot.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Union

from scriptmode._core.handle.failed_job import find_failure
from scriptmode._core.handle.log_filter import ALL_LINES, LogFilter, line_selector
from scriptmode._core.platforms.registry import Platform
from scriptmode._core.spec.host_values import HostActivity
from scriptmode._core.spec.job_description import JobDescription
from scriptmode._core.spec.job_request import JobRequest
from scriptmode._core.spec.service_values import LogEvent
from scriptmode._display.collector import Collector
from scriptmode._display.snapshot import JobSnapshot
from scriptmode.errors import ScriptmodeError

if TYPE_CHECKING:
    from scriptmode._display.notebook_view import NotebookView
    from scriptmode._display.terminal_view import TerminalView

#: Seconds between two drawings.
DRAW_SECONDS = 0.5
#: Number of characters that wait for one drawing at most, and those that each line counts beside its own.
_MOST_PENDING, _LINE = 8 * 1024 * 1024, 1024


#: The place where a job is shown: a terminal or a notebook.
LiveView = Union["NotebookView", "TerminalView"]


class Follower:
    """One job that is followed, and the live view it is shown in."""

    def __init__(
        self, name: str, platform: Platform, view: LiveView, source_dir: str = "", log_filter: LogFilter = ALL_LINES
    ) -> None:
        self._name = name
        self._source_dir = source_dir
        self._platform = platform
        self._view = view
        self._collector = Collector(name)
        self._takes = line_selector(platform, name, log_filter)
        self._description: JobDescription | None = None
        self._pending: deque[LogEvent] = deque()
        self._drawing = Lock()
        self._finished = Event()
        self._draw_error: BaseException | None = None
        #: What the hosts do, if it was queried since the last drawing.
        self._activity: Mapping[str, HostActivity] | None = None
        #: Characters read since the caller's thread drew; the drawing thread may have drawn some of them.
        self._characters = 0

    def run(self) -> None:
        """Follow the job until it ends; an interrupt or an error leaves the view in its state at that time."""
        drawer = Thread(target=self._keep_drawing, name=f"view of {self._name}", daemon=True)
        with self._view.session():
            try:
                drawer.start()
                self._read()
            finally:
                self._finished.set()
                try:
                    drawer.join()
                    self._query()
                finally:
                    self._view.close(*self._next())
        if self._draw_error is not None:
            raise self._draw_error

    def _read(self) -> None:
        # The metric definitions must be known before the first line: an ended job's log comes before a description.
        with suppress(ScriptmodeError):
            self._set_description(self._platform.describe(self._name))
        for event in self._platform.log_events(self._name, follow=True, on_description=self._set_description):
            # A deque needs no lock; the expensive work is done by the drawing thread, for many lines at once.
            self._pending.append(event)
            self._characters += len(event.message) + _LINE
            if self._characters >= _MOST_PENDING:
                self._characters = 0
                self._draw()
            if self._draw_error is not None:
                return

    def _set_description(self, description: JobDescription) -> None:
        self._description = description

    def _keep_drawing(self) -> None:
        try:
            while not self._finished.wait(DRAW_SECONDS):
                self._query()
                self._draw()
        except BaseException as error:  # noqa: BLE001 - raised where the job is followed
            self._draw_error = error
            with suppress(OSError, ValueError):  # a job may be silent for long
                sys.stderr.write(f"\nthe view of {self._name} failed: {error!r}; the job goes on\n")

    def _query(self) -> None:
        """Query what the log does not have: progress of the channels, and activity of the hosts."""
        with suppress(ScriptmodeError):
            self._collector.add_progress(self._platform.progress(self._name), time.monotonic())
            if self._description is not None and not self._description.has_ended:
                self._activity = self._platform.activity(self._name)

    def _draw(self) -> None:
        with self._drawing:
            self._view.draw(*self._next())

    def _next(self) -> tuple[JobSnapshot, list[LogEvent]]:
        """Return a snapshot and the lines since the last one; the caller holds the lock, or the thread has ended."""
        collector = self._collector
        if self._description is not None and self._description is not collector.description:
            if collector.description is None:
                collector.roles = find_roles(self._description.job)
            # Before the lines: it defines the metrics in them.
            collector.set_description(self._description)
            collector.failure = find_failure(self._description, self._platform, self._source_dir)
        events = [self._pending.popleft() for _ in range(len(self._pending))]
        for event in events:
            collector.add_event(event)
        if self._activity is not None:
            # After the lines that the hosts ended before it was queried.
            collector.set_activity(self._activity)
            self._activity = None
        return collector.snapshot(self._platform.clock.wall_time()), list(filter(self._takes, events))


def find_roles(job: JobRequest) -> dict[str, str]:
    """Return each host's role by its name; nothing if they cannot be found."""
    # A description may lack fields. An error in what is only displayed must not end the following.
    with suppress(ScriptmodeError, OSError, LookupError, ValueError, ImportError):
        from scriptmode.planning._host_plans import job_roles

        return job_roles(job)
    return {}
