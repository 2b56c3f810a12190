"""The live view in a terminal: log lines scroll, a panel stays below them and gives way to a summary at the end."""

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

#: Columns and rows of a terminal that does not say how large it is.
_DEFAULT_SIZE = (80, 24)
#: Columns that stay free: Ctrl-C shows itself as ``^C`` where the cursor stands, and must not begin a row.
_MARGIN = 2
#: Number of characters shown of a log line.
LINE_CHARACTERS = 8 * 1024
_BLOCKS = "\u2581\u203a\u2500\u2026"


class TerminalView:
    """Draws into a terminal, by one write a frame; what is drawn last is taken away before the next lines."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._stream = stream
        # What it renders is taken from it, and written as a part of a frame.
        self._console = Console(file=io.StringIO(), force_terminal=True, highlight=False, markup=False, emoji=False)
        self._plain = not _can_encode(_BLOCKS, stream)
        self._turns: dict[str, int] = {}
        #: The columns that each drawn row takes.
        self._drawn: list[int] = []
        self._panel = ""
        #: Hosts of which only a part of the last line has come.
        self._long: set[str] = set()
        self._asides: list[_StreamCapture] = []

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Keep what the program writes to the terminal meanwhile out of the panel: it scrolls with the log."""
        with ExitStack() as stack:
            for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
                if stream is not None and stream.isatty():
                    self._asides.append(_StreamCapture(stream))
                    stack.enter_context(redirect(cast("TextIO", self._asides[-1])))
            yield

    def draw(self, frame: Frame) -> None:
        """Write the new lines, and the panel below them."""
        columns, rows = _size(self._stream)
        text = self._lines(frame)
        drawn = StatusPanel(columns - _MARGIN, plain=self._plain).rows(frame.view, rows // 2)
        panel = self._rendered(drawn)
        sizes = [row.cell_len for row in drawn]
        if text or panel != self._panel or sizes != self._drawn:
            self._write(self._erased(columns) + text + panel)
        self._panel, self._drawn = panel, sizes

    def close(self, frame: Frame) -> None:
        """Write the last lines, and a summary in the panel's place."""
        columns, _ = _size(self._stream)
        text = self._erased(columns) + self._lines(frame, last=True)
        summary = StatusPanel(columns - _MARGIN, plain=self._plain).summary(frame.view)
        self._drawn = []
        self._write(text + (f"{self._rendered(summary)}\n" if summary else ""))

    def _lines(self, frame: Frame, *, last: bool = False) -> str:
        lines = [log_lines.prefixed(event, self._turns, self._message(event)) for event in self._whole(frame.events)]
        lines += [f"scriptmode: {sanitize(sentence)}" for sentence in frame.said]
        lines += [line for aside in self._asides for line in aside.lines(last=last)]
        return "".join(f"{line}\n" for line in lines)

    def _whole(self, events: Iterable[LogEvent]) -> Iterator[LogEvent]:
        """Yield lines, and of those that come in pieces the last piece alone."""
        for event in events:
            if event.continues:
                self._long.add(event.host)
            else:
                yield event

    def _message(self, event: LogEvent) -> str:
        text, note = render_line(event.message, colours=True), ""
        if len(text) > LINE_CHARACTERS:
            text, note = f"{text[:LINE_CHARACTERS]}\x1b[0m", f"{len(text) - LINE_CHARACTERS:,} characters more"
        if event.host in self._long:
            self._long.remove(event.host)
            note = "the end of a line of more than 1 MiB"
        return f"{text} [{note}: scriptmode logs prints all of it]" if note else text

    def _rendered(self, rows: Sequence[Text]) -> str:
        from rich.text import Text

        with self._console.capture() as captured:
            self._console.print(Text("\n").join(rows), soft_wrap=True, end="")
        # Names and messages of the platform stand in it.
        return sanitize(captured.get())

    def _erased(self, columns: int) -> str:
        """Give what takes the panel away: from its first row on, which a narrower terminal has moved up."""
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
    """Stands for a terminal's stream while a view is in it: takes what any thread writes, to be shown line by line.

    After the view's end, whoever kept it writes to the stream through it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = Lock()
        self._text = ""
        self._is_over = False

    def __getattr__(self, name: str) -> Any:
        """Give what else the stream has: its encoding, its descriptor."""
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
        """Give the lines since, cleaned of what moves the cursor; one that is not ended only the ``last`` time."""
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
