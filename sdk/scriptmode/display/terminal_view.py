"""The live view in a terminal: log lines scroll, a panel stays below them and is replaced by a summary at the end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TextIO

from scriptmode.core.handle import log_lines
from scriptmode.core.spec.service_values import LogEvent
from scriptmode.core.text.colours import colours_enabled
from scriptmode.core.text.terminal_text import render_line, sanitize
from scriptmode.display.live_region import LiveRegion
from scriptmode.display.snapshot import Frame
from scriptmode.display.status_panel import StatusPanel

#: Columns left free: a terminal prints Ctrl-C as ``^C`` at the cursor, which must not start a new row.
_MARGIN = 2
#: Number of characters shown of a log line.
LINE_CHARACTERS = 8 * 1024


class TerminalView:
    """A live view in a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._region = LiveRegion(stream)
        self._turns: dict[str, int] = {}
        #: Hosts of which the last line is incomplete.
        self._incomplete: set[str] = set()

    def session(self) -> AbstractContextManager[None]:
        """Return a context that captures what the program writes to the terminal meanwhile: it scrolls with the log."""
        return self._region.session()

    def draw(self, frame: Frame) -> None:
        """Write the new lines, and the panel below them."""
        columns, rows = self._region.measure()
        panel = StatusPanel(columns - _MARGIN).rows(frame.snapshot, rows // 2)
        self._region.draw(panel, self._lines(frame))

    def close(self, frame: Frame) -> None:
        """Write the last lines, and replace the panel by a summary."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                # A captured line without an end.
                stream.flush()
        columns, _ = self._region.measure()
        summary = StatusPanel(columns - _MARGIN).summary(frame.snapshot)
        self._region.close(self._lines(frame), summary)

    def _lines(self, frame: Frame) -> str:
        lines = [
            log_lines.prefixed(event, self._turns, self._message(event)) for event in self._complete_lines(frame.events)
        ]
        lines += [f"scriptmode: {sanitize(sentence)}" for sentence in frame.messages]
        return "".join(f"{line}\n" for line in lines)

    def _complete_lines(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Yield lines; of a line that arrives in pieces only the last piece."""
        for event in events:
            if event.continues:
                self._incomplete.add(event.host)
            else:
                yield event

    def _message(self, event: LogEvent) -> str:
        text, note = render_line(event.message, colours=colours_enabled(self._stream)), ""
        if len(text) > LINE_CHARACTERS:
            text, note = f"{text[:LINE_CHARACTERS]}\x1b[0m", f"{len(text) - LINE_CHARACTERS:,} characters more"
        if event.host in self._incomplete:
            self._incomplete.remove(event.host)
            note = "the end of a line of more than 1 MiB"
        return f"{text} [{note}: scriptmode logs prints all of it]" if note else text
