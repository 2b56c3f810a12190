"""The live view in a terminal: log lines scroll, a panel stays below them and gives way to a summary at the end."""

from __future__ import annotations

import io
import os
import re
import sys
from contextlib import contextmanager, redirect_stderr
from typing import TYPE_CHECKING, TextIO

from scriptmode import log_view
from scriptmode.display.panel import Panel
from scriptmode.display.terminal_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.text import Text

    from scriptmode.display.values import Frame

#: Columns and rows of a terminal that does not say how large it is.
_SIZE = (80, 24)
#: Columns that stay free: Ctrl-C shows itself as ``^C`` where the cursor stands, and must not begin a row.
_FREE = 2
_BLOCKS = "\u2581\u203a\u2500\u2026"


class TerminalView:
    """Draws into a terminal, by one write a frame; what is drawn last is taken away before the next lines."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console

        self._stream = stream
        # What it renders is taken from it, and written as a part of a frame.
        self._console = Console(file=io.StringIO(), force_terminal=True, highlight=False, markup=False, emoji=False)
        self._plain = not _can_show(_BLOCKS, stream)
        self._turns: dict[str, int] = {}
        #: The columns that each drawn row takes.
        self._drawn: list[int] = []
        self._panel = ""
        self._aside = _Aside()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Keep what the program writes to stderr, to a terminal, out of the panel: it scrolls with the log."""
        if sys.stderr is None or not sys.stderr.isatty():
            yield
            return
        with redirect_stderr(self._aside):
            yield

    def draw(self, frame: Frame) -> None:
        """Write the new lines, and the panel below them."""
        columns, rows = _size(self._stream)
        text = self._lines(frame)
        drawn = Panel(columns - _FREE, plain=self._plain).rows(frame.view, rows // 2)
        panel = self._rendered(drawn)
        sizes = [row.cell_len for row in drawn]
        if text or panel != self._panel or sizes != self._drawn:
            self._write(self._erased(columns) + text + panel)
        self._panel, self._drawn = panel, sizes

    def close(self, frame: Frame) -> None:
        """Write the last lines, and a summary in the panel's place."""
        columns, _ = _size(self._stream)
        text = self._erased(columns) + self._lines(frame)
        summary = Panel(columns - _FREE, plain=self._plain).summary(frame.view)
        self._drawn = []
        self._write(text + (f"{self._rendered(summary)}\n" if summary else ""))

    def _lines(self, frame: Frame) -> str:
        lines = [log_view.prefixed(event, self._turns, shown(event.message, colours=True)) for event in frame.events]
        lines += [f"scriptmode: {sentence}" for sentence in frame.said]
        lines += self._aside.lines()
        return "".join(f"{line}\n" for line in lines)

    def _rendered(self, rows: Sequence[Text]) -> str:
        from rich.text import Text

        with self._console.capture() as captured:
            self._console.print(Text("\n").join(rows), soft_wrap=True, end="")
        return captured.get()

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


class _Aside(io.TextIOBase):
    """Takes what is written meanwhile, to be shown line by line."""

    def __init__(self) -> None:
        self._text = ""

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        self._text += text
        return len(text)

    def lines(self) -> list[str]:
        """Give the lines that were written since, cleaned of what moves the cursor."""
        text, self._text = self._text, ""
        return [shown(line, colours=True) for line in re.split("\n", text.rstrip("\n"))] if text else []


def _size(stream: TextIO) -> tuple[int, int]:
    try:
        columns, rows = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return _SIZE
    return columns or _SIZE[0], rows or _SIZE[1]


def _can_show(text: str, stream: TextIO) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
