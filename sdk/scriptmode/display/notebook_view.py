"""The live view in a notebook: one HTML output that is replaced in place, and stays small."""

from __future__ import annotations

import time
from collections import deque
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from typing import Any

from scriptmode.core.platforms.base import Platform
from scriptmode.core.text import messages
from scriptmode.core.text.terminal_text import render_line
from scriptmode.display import formatting, html_card
from scriptmode.display.snapshot import Frame
from scriptmode.errors import ScriptmodeError

#: Number of log lines that a notebook shows, and of characters of each.
LAST_LINES, LINE_CHARACTERS = 20, 500
#: Seconds between two drawings at least; a little less than `follower.DRAW_SECONDS`.
DRAW_SECONDS = 0.45


class NotebookView:
    """Shows a job in the output of the running cell."""

    def __init__(self, name: str, platform: Platform) -> None:
        self._name = name
        self._platform = platform
        self._display: Any = None
        self._last: deque[tuple[str, str]] = deque(maxlen=LAST_LINES)
        self._next = 0.0

    def session(self) -> AbstractContextManager[None]:
        """Return a context without effects."""
        return nullcontext()

    def draw(self, frame: Frame) -> None:
        """Draw the current state of the job, unless it was just drawn: a long old log makes many frames."""
        self._keep_last(frame)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + DRAW_SECONDS
            self._show(frame, {})

    def close(self, frame: Frame) -> None:
        """Draw the job as it stays in the notebook, with the locations of its log."""
        self._keep_last(frame)
        log_locations: dict[str, str] = {}
        if frame.snapshot.ended:
            with suppress(ScriptmodeError):
                log_locations = self._platform.log_locations(self._name)
        self._show(frame, log_locations)

    def _keep_last(self, frame: Frame) -> None:
        # Truncated at once: a line may have a million characters.
        self._last.extend(
            (event.host, formatting.truncate(render_line(event.message), LINE_CHARACTERS))
            for event in [event for event in frame.events if not event.continues][-LAST_LINES:]
        )

    def _show(self, frame: Frame, log_locations: dict[str, str]) -> None:
        snapshot, lines = frame.snapshot, list(self._last)
        elapsed = messages.format_duration(snapshot.elapsed)
        head = f"training job {snapshot.name}: {snapshot.secondary or snapshot.status} {elapsed}"
        data = {
            "text/html": html_card.render_card(
                snapshot, lines=lines, notes=frame.messages, log_locations=log_locations
            ),
            # For a front end without HTML.
            "text/plain": "\n".join([head, *(f"{host} | {text}" for host, text in lines)]),
        }
        if self._display is None:
            self._display = import_module("IPython.display").display(data, raw=True, display_id=True)
        else:
            self._display.update(data, raw=True)
