"""The live view in a terminal: log lines scroll, a panel stays below them and is replaced by a summary at the end.

Each frame is one write: control sequences that erase the panel, the new lines, and the panel again. What the program
itself writes to the terminal meanwhile is captured and scrolls with the log.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from threading import Lock
from typing import TYPE_CHECKING, Any, TextIO, cast

from scriptmode.display import log_lines
from scriptmode.display.status_panel import StatusPanel
from scriptmode.terminal_text import render_line, sanitize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.text import Text

    from scriptmode.display.snapshot import Frame
    from scriptmode.platforms.base import LogEvent

#: Columns and rows of a terminal of unknown size.
_DEFAULT_SIZE = (80, 24)
#: Columns left free: a terminal prints Ctrl-C as ``^C`` at the cursor, which must not start a new row.
_MARGIN = 2
#: Number of characters shown of a log line.
LINE_CHARACTERS = 8 * 1024
_BLOCKS = "\u2581\u203a\u2500\u2026"


class TerminalView:
    """A live view in a terminal. Each frame is one write, which first erases the panel of the last one."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._stream = stream
        # Renders into memory; the result is part of a frame.
        self._console = Console(file=io.StringIO(), force_terminal=True, highlight=False, markup=False, emoji=False)
        self._ascii_only = not _can_encode(_BLOCKS, stream)
        self._turns: dict[str, int] = {}
        #: The columns of each row of the panel that is drawn.
        self._drawn: list[int] = []
        self._panel = ""
        #: Hosts of which the last line is incomplete.
        self._incomplete: set[str] = set()
        self._captures: list[_StreamCapture] = []

    @contextmanager
    def session(self) -> Iterator[None]:
        """Capture what the program writes to the terminal meanwhile: it scrolls with the log."""
        with ExitStack() as stack:
            for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
                if stream is not None and stream.isatty():
                    self._captures.append(_StreamCapture(stream))
                    stack.enter_context(redirect(cast("TextIO", self._captures[-1])))
            yield

    def draw(self, frame: Frame) -> None:
        """Write the new lines, and the panel below them."""
        columns, rows = _size(self._stream)
        text = self._lines(frame)
        drawn = StatusPanel(columns - _MARGIN, ascii_only=self._ascii_only).rows(frame.snapshot, rows // 2)
        panel = self._rendered(drawn)
        sizes = [row.cell_len for row in drawn]
        if text or panel != self._panel or sizes != self._drawn:
            self._write(self._erased(columns) + text + panel)
        self._panel, self._drawn = panel, sizes

    def close(self, frame: Frame) -> None:
        """Write the last lines, and replace the panel by a summary."""
        columns, _ = _size(self._stream)
        text = self._erased(columns) + self._lines(frame, last=True)
        summary = StatusPanel(columns - _MARGIN, ascii_only=self._ascii_only).summary(frame.snapshot)
        self._drawn = []
        self._write(text + (f"{self._rendered(summary)}\n" if summary else ""))

    def _lines(self, frame: Frame, *, last: bool = False) -> str:
        lines = [
            log_lines.prefixed(event, self._turns, self._message(event)) for event in self._complete_lines(frame.events)
        ]
        lines += [f"scriptmode: {sanitize(sentence)}" for sentence in frame.messages]
        lines += [line for capture in self._captures for line in capture.lines(last=last)]
        return "".join(f"{line}\n" for line in lines)

    def _complete_lines(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Yield lines; of a line that arrives in pieces only the last piece."""
        for event in events:
            if event.continues:
                self._incomplete.add(event.host)
            else:
                yield event

    def _message(self, event: LogEvent) -> str:
        text, note = render_line(event.message, colours=True), ""
        if len(text) > LINE_CHARACTERS:
            text, note = f"{text[:LINE_CHARACTERS]}\x1b[0m", f"{len(text) - LINE_CHARACTERS:,} characters more"
        if event.host in self._incomplete:
            self._incomplete.remove(event.host)
            note = "the end of a line of more than 1 MiB"
        return f"{text} [{note}: scriptmode logs prints all of it]" if note else text

    def _rendered(self, rows: Sequence[Text]) -> str:
        from rich.text import Text

        with self._console.capture() as captured:
            self._console.print(Text("\n").join(rows), soft_wrap=True, end="")
        # It contains names and messages of the platform.
        return sanitize(captured.get())

    def _erased(self, columns: int) -> str:
        """Return the control sequences that erase the panel from its first row on, in a terminal of any width."""
        if not self._drawn:
            return ""
        rows = sum(max(1, -(-size // columns)) for size in self._drawn)
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") + "\x1b[J"

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            encoding = self._stream.encoding or "ascii"
            self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self._stream.flush()


class _StreamCapture:
    """A replacement of a terminal's stream while a live view is drawn: it captures lines that any thread writes.

    After the end of the view it writes to the stream: callers may still hold it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = Lock()
        self._text = ""
        self._is_over = False

    def __getattr__(self, name: str) -> Any:
        """Return other attributes of the stream, such as its encoding."""
        return getattr(self._stream, name)

    def write(self, text: str, /) -> int:
        with self._lock:
            if self._is_over:
                return self._stream.write(text)
            self._text += text
            return len(text)

    def writelines(self, lines: Iterable[str], /) -> None:
        self.write("".join(lines))

    def lines(self, *, last: bool) -> list[str]:
        """Return the lines since the last call, sanitized; an incomplete line only with ``last``."""
        with self._lock:
            lines = self._text.split("\n")
            self._text = "" if last else lines[-1]
            self._is_over = last
        return [render_line(line, colours=True) for line in (lines if last and lines[-1] else lines[:-1])]


def _size(stream: TextIO) -> tuple[int, int]:
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return _DEFAULT_SIZE
    return columns or _DEFAULT_SIZE[0], rows or _DEFAULT_SIZE[1]


def _can_encode(text: str, stream: TextIO) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
