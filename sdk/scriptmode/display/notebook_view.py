"""The live view in a notebook: one piece of HTML that is drawn anew in its place, and stays small."""

from __future__ import annotations

import sys
import time
from collections import deque
from contextlib import nullcontext, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from scriptmode.display import formatting, html_card
from scriptmode.errors import ScriptmodeError
from scriptmode.terminal_text import render_line

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from scriptmode.display.snapshot import Frame
    from scriptmode.platforms.base import Platform

#: A notebook shows so many lines, and of each so many characters.
LAST_LINES, LINE_CHARACTERS = 20, 500
#: Between two drawings, at least; a little less than between those that are wanted.
DRAW_SECONDS = 0.45


def is_running() -> bool:
    """Say whether this process is a notebook's kernel; IPython is asked only where it is there already."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class NotebookView:
    """Shows a job in the output of the running cell."""

    def __init__(self, name: str, platform: Platform) -> None:
        self._name = name
        self._platform = platform
        self._handle: Any = None
        self._last: deque[tuple[str, str]] = deque(maxlen=LAST_LINES)
        self._notes: list[str] = []
        self._sent = ""
        self._next = 0.0

    def shown(self) -> AbstractContextManager[None]:
        """Give what surrounds the following: nothing."""
        return nullcontext()

    def draw(self, frame: Frame) -> None:
        """Draw the job as it is now, unless that was just done: a long log that is read at once makes many frames."""
        self._take(frame)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + DRAW_SECONDS
            self._show(frame, {})

    def close(self, frame: Frame) -> None:
        """Draw the job as it stays in the notebook, with where its whole log is."""
        self._take(frame)
        places: dict[str, str] = {}
        if frame.view.ended:
            with suppress(ScriptmodeError):
                places = self._platform.log_locations(self._name)
        self._show(frame, places)

    def _take(self, frame: Frame) -> None:
        # Cut at once: a line may have a million characters.
        self._last.extend(
            (event.host, formatting.truncate(render_line(event.message), LINE_CHARACTERS))
            for event in [event for event in frame.events if not event.continues][-LAST_LINES:]
        )
        self._notes += frame.said

    def _show(self, frame: Frame, places: dict[str, str]) -> None:
        lines = list(self._last)
        html = html_card.render_card(frame.view, lines=lines, notes=self._notes, places=places)
        if html == self._sent:
            return
        self._sent = html
        view = frame.view
        head = f"training job {view.name}: {view.secondary or view.status} {formatting.format_duration(view.elapsed)}"
        # For a front end without HTML.
        data = {"text/html": html, "text/plain": "\n".join([head, *(f"{host} | {text}" for host, text in lines)])}
        if self._handle is None:
            self._handle = import_module("IPython.display").display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
