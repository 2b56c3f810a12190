"""Follows a job: its log is read as it comes, and what is seen of it is drawn twice a second at most."""

from __future__ import annotations

import time
from _thread import interrupt_main
from collections import deque
from contextlib import suppress
from threading import Event, Lock, Thread, current_thread, main_thread
from typing import TYPE_CHECKING, Any, Protocol

from scriptmode.display.collector import Collector
from scriptmode.display.snapshot import Frame
from scriptmode.errors import ScriptmodeError
from scriptmode.platforms.base import ENDED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from scriptmode.platforms.base import LogEvent, Platform

#: Between two drawings.
DRAW_SECONDS = 0.5
#: So many lines wait for one drawing at most: who reads an old, long log is drawn to at the speed of the terminal.
_MOST_PENDING = 5000
#: Number of characters that wait for one drawing at most: lines may be long.
_MOST_PENDING_CHARACTERS = 8 * 1024 * 1024
#: Seconds for which the reader lets lines gather, unless as many came in so long as only an old log has.
_GATHER_SECONDS, _BACKLOG_LINES = 0.2, 2000


class LiveView(Protocol):
    """Where a job is shown."""

    def shown(self) -> AbstractContextManager[None]:
        """Give what surrounds the following."""

    def draw(self, frame: Frame) -> None:
        """Show what is new."""

    def close(self, frame: Frame) -> None:
        """Show how it stands at the end of the following."""


class Follower:
    """One job on its way to its end, and the view it is shown in.

    The caller's thread reads, so that an interrupt meets it there; another one draws, for time passes in a log that is
    silent too.
    """

    def __init__(self, name: str, platform: Platform, view: LiveView) -> None:
        self._name = name
        self._platform = platform
        self._view = view
        self._collector = Collector(name)
        self._description: Mapping[str, Any] | None = None
        self._pending: deque[LogEvent] = deque()
        self._drawing = Lock()
        self._over = Event()
        self._trouble: BaseException | None = None
        #: Whether the caller's thread is reading and can be interrupted in it; changed and used under the lock.
        self._reads, self._reading = False, Lock()
        self._knows_roles = False
        #: Of what was read since the reader's thread drew; the other thread may have drawn some of it.
        self._characters = 0
        self._rested, self._taken = time.monotonic(), 0

    def run(self) -> None:
        """Follow the job until it ended; whatever ends that before leaves the view as it is then."""
        drawer = Thread(target=self._keep_drawing, name=f"view of {self._name}", daemon=True)
        with self._view.shown():
            try:
                drawer.start()
                self._follow()
            except KeyboardInterrupt:
                # The drawer's own word, or somebody's.
                if self._trouble is None:
                    raise
            finally:
                self._close(drawer)
        if self._trouble is not None:
            raise self._trouble

    def _follow(self) -> None:
        # Python interrupts the main thread alone; another one learns of the drawer's trouble by the next line.
        self._reads = current_thread() is main_thread()
        try:
            self._read()
            self._end()
        finally:
            with self._reading:
                self._reads = False

    def _close(self, drawer: Thread) -> None:
        self._over.set()
        try:
            drawer.join()
            with suppress(ScriptmodeError):
                self._look()
        finally:
            self._view.close(self._frame())

    def _read(self) -> None:
        # Which metrics are in the lines is known before the first of them: of a job that ended, the log comes first.
        with suppress(ScriptmodeError):
            self._describe(self._platform.describe(self._name))
        events = self._platform.log_events(self._name, follow=True, on_description=self._describe)
        for event in events:
            # A deque takes it without a lock; the other thread does all that costs time, for many lines at once.
            self._pending.append(event)
            self._characters += len(event.message)
            if len(self._pending) >= _MOST_PENDING or self._characters >= _MOST_PENDING_CHARACTERS:
                self._characters = 0
                self._draw()
            if self._trouble is not None:
                raise self._trouble
            self._rest()

    def _rest(self) -> None:
        """Let lines gather where they come one by one: to wake for each costs more than the lines do."""
        self._taken += 1
        if time.monotonic() - self._rested < _GATHER_SECONDS:
            return
        if self._taken < _BACKLOG_LINES:
            time.sleep(_GATHER_SECONDS)
        self._rested, self._taken = time.monotonic(), 0

    def _end(self) -> None:
        """See how the job ended, where its log did not tell."""
        if self._description is None or self._description["TrainingJobStatus"] not in ENDED:
            with suppress(ScriptmodeError):
                self._describe(self._platform.describe(self._name))

    def _describe(self, description: Mapping[str, Any]) -> None:
        self._description = description

    def _keep_drawing(self) -> None:
        try:
            while not self._over.wait(DRAW_SECONDS):
                with suppress(ScriptmodeError):
                    self._look()
                self._draw()
        except BaseException as error:  # noqa: BLE001 - raised where the job is followed
            self._trouble = error
            with self._reading:
                if self._reads:
                    interrupt_main()

    def _look(self) -> None:
        """Ask what no line of the log tells."""
        self._collector.progress(self._platform.progress(self._name), time.monotonic())
        if self._description is not None and not self._knows_roles:
            self._knows_roles = True
            self._collector.roles = find_roles(self._description)

    def _draw(self) -> None:
        with self._drawing:
            self._view.draw(self._frame())

    def _frame(self) -> Frame:
        """Take what came since the last one; only who draws may call it."""
        if self._description is not None and self._description is not self._collector.description:
            # First: it says which metrics are in the lines.
            self._collector.describe(self._description)
        events = [self._pending.popleft() for _ in range(len(self._pending))]
        for event in events:
            self._collector.take(event)
        said, self._collector.problems = self._collector.problems, []
        return Frame(self._collector.view(self._platform.clock.wall_time()), events, said)


def find_roles(description: Mapping[str, Any]) -> dict[str, str]:
    """Give each host's role by its name, none where they cannot be told."""
    from scriptmode.planning import host_roles

    try:
        return host_roles(description)
    except (ScriptmodeError, OSError, LookupError, ValueError):
        # Of a description that lacks what the service's have. What is only shown ends no following.
        return {}
