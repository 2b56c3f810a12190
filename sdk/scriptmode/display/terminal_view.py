"""The live view in a terminal: log lines scroll, a panel stays below them and is replaced by a summary at the end.

``rich.live.Live`` draws: it keeps the panel below what is printed, and what the program itself writes to the terminal
meanwhile scrolls with the log. Each frame is one write.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TextIO

from rich.console import Console, ConsoleDimensions
from rich.live import Live
from rich.segment import Segment, Segments
from rich.text import Text

from scriptmode.colours import colours_enabled
from scriptmode.display import log_lines
from scriptmode.display.status_panel import StatusPanel
from scriptmode.terminal_text import render_line, sanitize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scriptmode.display.snapshot import Frame
    from scriptmode.platforms.base import LogEvent

#: Columns left free: a terminal prints Ctrl-C as ``^C`` at the cursor, which must not start a new row.
_MARGIN = 2
#: Of a terminal of unknown size.
_DEFAULT_SIZE = ConsoleDimensions(80, 24)
#: Number of characters shown of a log line.
LINE_CHARACTERS = 8 * 1024
_BLOCKS = "\u2581\u203a\u2500\u2026"


class _Console(Console):
    """A console whose broken pipe is an error of the caller; rich's exits the process."""

    def on_broken_pipe(self) -> NoReturn:
        raise  # noqa: PLE0704 - rich calls it where it handles the BrokenPipeError


class _Panel:
    """The panel: Live renders its present rows with each print, where ``Live.update`` needs a print of its own."""

    def __init__(self) -> None:
        self.rows: list[Text] = []

    def __rich__(self) -> Text:
        return Text("\n").join(self.rows)


class TerminalView:
    """A live view in a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._console = _Console(
            file=stream,
            force_terminal=True,
            force_interactive=True,
            highlight=False,
            markup=False,
            emoji=False,
            no_color=not colours_enabled(stream),
        )
        self._panel = _Panel()
        self._live = Live(
            self._panel,
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=_is_terminal(sys.stdout),
            redirect_stderr=_is_terminal(sys.stderr),
        )
        self._ascii_only = self._encodable(_BLOCKS) != _BLOCKS
        self._turns: dict[str, int] = {}
        #: Hosts of which the last line is incomplete.
        self._incomplete: set[str] = set()

    @contextmanager
    def session(self) -> Iterator[None]:
        """Capture what the program writes to the terminal meanwhile: it scrolls with the log."""
        # Started without a first drawing: the panel has no rows yet.
        self._live.start()
        try:
            yield
        finally:
            self._live.stop()

    def draw(self, frame: Frame) -> None:
        """Write the new lines, and the panel below them."""
        columns, rows = self._console.size = _size(self._stream)
        before, lines = self._panel.rows, self._lines(frame)
        self._panel.rows = StatusPanel(columns - _MARGIN, ascii_only=self._ascii_only).rows(frame.snapshot, rows // 2)
        if lines:
            self._print(lines)
        elif self._panel.rows != before:
            self._live.refresh()

    def close(self, frame: Frame) -> None:
        """Write the last lines, and replace the panel by a summary."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                # A captured line without an end.
                stream.flush()
        self._console.size = _size(self._stream)
        summary = StatusPanel(self._console.width - _MARGIN, ascii_only=self._ascii_only).summary(frame.snapshot)
        self._live.stop()
        with self._console:
            self._print(self._lines(frame))
            for row in summary:
                self._console.print(row, soft_wrap=True)

    def _print(self, lines: str) -> None:
        """Print lines without changes: their control sequences are colours."""
        self._console.print(Segments([Segment(lines)]), end="", soft_wrap=True)

    def _lines(self, frame: Frame) -> str:
        lines = [
            log_lines.prefixed(event, self._turns, self._message(event)) for event in self._complete_lines(frame.events)
        ]
        lines += [f"scriptmode: {sanitize(sentence)}" for sentence in frame.messages]
        return self._encodable("".join(f"{line}\n" for line in lines))

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
            # A progress bar begins each of its states at the start of the line: the last one is all that is to be seen.
            note = "" if event.message.startswith("\r") else "the end of a line of more than 1 MiB"
        return f"{text} [{note}: scriptmode logs prints all of it]" if note else text

    def _encodable(self, text: str) -> str:
        encoding = self._stream.encoding or "ascii"
        return text.encode(encoding, "backslashreplace").decode(encoding)


def _size(stream: TextIO) -> ConsoleDimensions:
    """Return the size of the terminal itself: rich prefers COLUMNS and LINES, which do not follow a resize."""
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return _DEFAULT_SIZE
    return ConsoleDimensions(columns or _DEFAULT_SIZE.width, rows or _DEFAULT_SIZE.height)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()
