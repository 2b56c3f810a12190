"""The live view in a notebook: one HTML output that is replaced in place, and stays small."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from importlib import import_module
from typing import Any

from scriptmode._core.platforms.registry import Platform
from scriptmode._core.spec.service_values import LogEvent
from scriptmode._core.text import messages
from scriptmode._display import formatting, html_card
from scriptmode._display.snapshot import JobSnapshot
from scriptmode.errors import ScriptmodeError
from scriptmode_runtime._terminal_line import render_line

#: Number of log lines that a notebook shows, and of characters of each.
LAST_LINES, LINE_CHARACTERS = 20, 500
#: Seconds between two drawings at least; a little less than `follower.DRAW_SECONDS`.
DRAW_SECONDS = 0.45


class NotebookView:
    """Shows a job in the output of the running cell."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._display: Any = None
        self._last: deque[tuple[str, str]] = deque(maxlen=LAST_LINES)
        self._next = 0.0

    def session(self) -> AbstractContextManager[None]:
        """Return a context without effects."""
        return nullcontext()

    def draw(self, snapshot: JobSnapshot, events: Sequence[LogEvent]) -> None:
        """Draw the current state of the job, unless it was just drawn: a long old log makes many snapshots."""
        self._keep_last(events)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + DRAW_SECONDS
            self._show(snapshot)

    def close(self, snapshot: JobSnapshot, events: Sequence[LogEvent]) -> None:
        """Draw the job as it stays in the notebook, with the locations of its log."""
        self._keep_last(events)
        if snapshot.ended:
            with suppress(ScriptmodeError):
                snapshot = replace(snapshot, log_locations=self._platform.log_locations(snapshot.name))
        self._show(snapshot)

    def _keep_last(self, events: Sequence[LogEvent]) -> None:
        # Truncated at once: a line may have a million characters.
        self._last.extend(
            (event.host, formatting.truncate(render_line(event.message), LINE_CHARACTERS))
            for event in [event for event in events if not event.continues][-LAST_LINES:]
        )

    def _show(self, snapshot: JobSnapshot) -> None:
        lines = list(self._last)
        elapsed = messages.format_duration(snapshot.elapsed)
        head = f"training job {snapshot.name}: {snapshot.secondary or snapshot.status} {elapsed}"
        data = {
            "text/html": html_card.render_card(snapshot, lines),
            # For a front end without HTML.
            "text/plain": "\n".join([head, *(f"{host} | {text}" for host, text in lines)]),
        }
        if self._display is None:
            self._display = import_module("IPython.display").display(data, raw=True, display_id=True)
        else:
            self._display.update(data, raw=True)
