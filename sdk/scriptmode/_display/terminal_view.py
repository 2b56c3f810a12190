"""The live view in a terminal: log lines scroll, a panel stays below them and is replaced by a summary at the end.

``rich.live.Live`` draws: it keeps the panel below what is printed, and what the program itself writes to the terminal
meanwhile scrolls with the lines. The cursor stays visible: a signal that ends or stops this process leaves a terminal
that can be used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, TextIO

from rich.console import Console, ConsoleDimensions
from rich.live import Live
from rich.segment import Segment, Segments
from rich.text import Text

from scriptmode._core.handle import log_lines
from scriptmode._core.spec.service_values import LogEvent
from scriptmode._core.text.colours import colours_enabled
from scriptmode._display.snapshot import JobSnapshot
from scriptmode._display.status_panel import panel_rows, summary_rows
from scriptmode_runtime._terminal_line import render_line, sanitize

#: Columns left free: a terminal prints Ctrl-C as ``^C`` at the cursor, which must not start a new row.
_MARGIN = 2
#: Number of characters shown of a log line.
LINE_CHARACTERS = 8 * 1024


class _Console(Console):
    """A console whose broken pipe is an error of the caller; rich's exits the process."""

    def on_broken_pipe(self) -> NoReturn:
        raise  # noqa: PLE0704 - rich calls it where it handles the BrokenPipeError


class TerminalView:
    """A live view in ``stream``, a terminal; its methods are called by one thread at a time."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._has_colours = colours_enabled(stream)
        self._console = _Console(
            file=stream,
            force_terminal=True,
            force_interactive=True,
            highlight=False,
            markup=False,
            emoji=False,
            no_color=not self._has_colours,
        )
        is_out, is_error = (output is not None and output.isatty() for output in (sys.stdout, sys.stderr))
        self._live = Live(
            self,
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=is_out,
            redirect_stderr=is_error,
        )
        self._panel: list[Text] = []
        self._turns: dict[str, int] | None = {} if self._has_colours else None
        self._notes: set[str] = set()
        #: Hosts of which the last line is incomplete.
        self._incomplete: set[str] = set()

    def __rich__(self) -> Text:
        """Return the panel: Live renders it with each print, where ``Live.update`` needs a print of its own."""
        return Text("\n").join(self._panel)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Capture what the program writes to the terminal meanwhile: it scrolls with the log."""
        # Started without a first drawing: there is no panel yet.
        self._live.start()
        self._console.show_cursor(True)  # noqa: FBT003 - rich's signature
        try:
            yield
        finally:
            self._live.stop()

    def draw(self, snapshot: JobSnapshot, events: Sequence[LogEvent]) -> None:
        """Write the new lines, and the panel below them; nothing if nothing is new."""
        columns, rows = self._measure()
        panel, lines = panel_rows(snapshot, columns - _MARGIN, rows // 2), self._lines(snapshot, events)
        if lines or panel != self._panel:
            # One write.
            with self._console:
                self._panel = panel
                self._print(lines) if lines else self._live.refresh()

    def close(self, snapshot: JobSnapshot, events: Sequence[LogEvent]) -> None:
        """Write the last lines, and replace the panel by a summary."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                # A captured line without an end.
                stream.flush()
        columns, _ = self._measure()
        with self._console:
            self._live.stop()
            self._print(self._lines(snapshot, events))
            for row in summary_rows(snapshot, columns - _MARGIN):
                # Nothing is redrawn below: a row that is too wide may continue in the next one.
                self._console.print(row, soft_wrap=True)

    def _measure(self) -> ConsoleDimensions:
        """Return the size of the terminal itself: rich prefers COLUMNS and LINES, which do not follow a resize."""
        try:
            columns, rows = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            columns = rows = 0
        self._console.size = ConsoleDimensions(columns or 80, rows or 24)
        return self._console.size

    def _print(self, lines: str) -> None:
        self._console.print(Segments([Segment(lines)]), end="", soft_wrap=True)

    def _lines(self, snapshot: JobSnapshot, events: Sequence[LogEvent]) -> str:
        lines = []
        for event in events:
            if event.continues:
                # Of a line that arrives in pieces only the last piece is shown.
                self._incomplete.add(event.host)
            else:
                lines.append(log_lines.prefixed(event.host, self._turns, self._message(event)))
        lines += [f"scriptmode: {sanitize(text)}" for text in snapshot.notes if text not in self._notes]
        self._notes.update(snapshot.notes)
        return "".join(f"{line}\n" for line in lines)

    def _message(self, event: LogEvent) -> str:
        text, note = render_line(event.message, colours=self._has_colours), ""
        if len(text) > LINE_CHARACTERS:
            text, note = f"{text[:LINE_CHARACTERS]}\x1b[0m", f"{len(text) - LINE_CHARACTERS:,} characters more"
        if event.host in self._incomplete:
            self._incomplete.remove(event.host)
            note = "the end of a line of more than 1 MiB"
        return f"{text} [{note}: scriptmode logs prints all of it]" if note else text
