"""Rows at the end of a terminal's output that are replaced in place, below lines that scroll.

``rich.live.Live`` draws: it keeps the rows below what is printed, and what the program itself writes to the terminal
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

from scriptmode.core.text.colours import colours_enabled

#: Of a terminal of unknown size.
_DEFAULT_SIZE = ConsoleDimensions(80, 24)


class _Console(Console):
    """A console whose broken pipe is an error of the caller; rich's exits the process."""

    def on_broken_pipe(self) -> NoReturn:
        raise  # noqa: PLE0704 - rich calls it where it handles the BrokenPipeError


class _Rows:
    """The rows: Live renders the present ones with each print, where ``Live.update`` needs a print of its own."""

    def __init__(self) -> None:
        self.rows: list[Text] = []

    def __rich__(self) -> Text:
        return Text("\n").join(self.rows)


class LiveRegion:
    """The rows at the end of ``stream``, a terminal; its methods are called by one thread at a time."""

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
        self._shown = _Rows()
        self._live = Live(
            self._shown,
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=_is_terminal(sys.stdout),
            redirect_stderr=_is_terminal(sys.stderr),
        )

    @contextmanager
    def session(self) -> Iterator[None]:
        """Capture what the program writes to the terminal meanwhile: it scrolls with the lines."""
        # Started without a first drawing: there are no rows yet.
        self._live.start()
        self._console.show_cursor(True)  # noqa: FBT003 - rich's signature
        try:
            yield
        finally:
            self._live.stop()

    def measure(self) -> ConsoleDimensions:
        """Return the size of the terminal itself: rich prefers COLUMNS and LINES, which do not follow a resize."""
        try:
            columns, rows = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            columns, rows = _DEFAULT_SIZE
        self._console.size = ConsoleDimensions(columns or _DEFAULT_SIZE.width, rows or _DEFAULT_SIZE.height)
        return self._console.size

    def draw(self, rows: list[Text], lines: str = "") -> None:
        """Write lines, whose control sequences are colours, and the rows below them; nothing if nothing is new."""
        if lines or rows != self._shown.rows:
            # One write.
            with self._console:
                self._shown.rows = rows
                self._print(lines) if lines else self._live.refresh()

    def close(self, lines: str, rows: Sequence[Text] = ()) -> None:
        """Remove the rows, and write the last lines and rows, which stay."""
        with self._console:
            self._live.stop()
            self._print(lines)
            for row in rows:
                # Nothing is redrawn below: a row that is too wide may continue in the next one.
                self._console.print(row, soft_wrap=True)

    def _print(self, lines: str) -> None:
        self._console.print(Segments([Segment(lines)]), end="", soft_wrap=True)


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()
