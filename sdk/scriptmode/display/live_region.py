"""Rows at the end of a terminal's output that are replaced in place, below lines that scroll.

``rich.live.Live`` draws: it keeps the rows below what is printed, and what the program itself writes to the terminal
meanwhile scrolls with the lines. Each drawing is one write, in synchronized output (DEC mode 2026): a terminal that has
it shows no state in between. The cursor is hidden while the rows are shown. It is shown again when they are removed: at
the end, after an error, and before a signal ends or stops this process.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock, current_thread, main_thread
from types import FrameType
from typing import NoReturn, TextIO

from rich.console import Console, ConsoleDimensions
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment, Segments
from rich.text import Text

from scriptmode.core.text.colours import colours_enabled

#: Of a terminal of unknown size.
_DEFAULT_SIZE = ConsoleDimensions(80, 24)
#: Signals whose default action ends this process; then SIGTSTP, Ctrl-Z, which stops it until SIGCONT.
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP"))
#: Seconds for which a signal waits for a drawing in another thread.
_DRAWING_SECONDS = 0.5
_SHOW_CURSOR, _HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"


class _Mode(Control):
    """A control sequence that rich does not know."""

    def __init__(self, sequence: str) -> None:
        self.segment = Segment(sequence, None, [(ControlType.BELL,)])


_BEGIN_UPDATE, _END_UPDATE = _Mode("\x1b[?2026h"), _Mode("\x1b[?2026l")


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
    """The rows at the end of ``stream``, a terminal."""

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
        self._live = self._create_live()
        #: Held by the thread that writes to the terminal.
        self._output = Lock()

    @contextmanager
    def session(self) -> Iterator[None]:
        """Capture what the program writes to the terminal meanwhile: it scrolls with the lines."""
        with self._restored_before_signals():
            # Started without a first drawing: there are no rows yet.
            self._live.start()
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
            with self._update():
                self._shown.rows = rows
                self._print(lines) if lines else self._live.refresh()

    def close(self, lines: str, rows: Sequence[Text] = ()) -> None:
        """Remove the rows, and write the last lines and rows, which stay."""
        with self._update():
            self._live.stop()
            self._print(lines)
            for row in rows:
                # Nothing is redrawn below: a row that is too wide may continue in the next one.
                self._console.print(row, soft_wrap=True)

    def _create_live(self) -> Live:
        return Live(
            self._shown,
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=_is_terminal(sys.stdout),
            redirect_stderr=_is_terminal(sys.stderr),
        )

    def _print(self, lines: str) -> None:
        self._console.print(Segments([Segment(lines)]), end="", soft_wrap=True)

    @contextmanager
    def _update(self) -> Iterator[None]:
        """Collect what is written, and write it at the end as one update of the screen."""
        with self._output, self._console:
            self._console.control(_BEGIN_UPDATE)
            try:
                yield
            finally:
                self._console.control(_END_UPDATE)

    @contextmanager
    def _restored_before_signals(self) -> Iterator[None]:
        """Handle the signals for which the program has no handler; only the main thread can."""
        is_main = current_thread() is main_thread()
        handled = [number for number in _SIGNALS if is_main and signal.getsignal(number) is signal.SIG_DFL]
        for number in handled:
            signal.signal(number, self._on_signal)
        try:
            yield
        finally:
            for number in handled:
                signal.signal(number, signal.SIG_DFL)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Restore the terminal, and take the signal's default action; show the rows again if the process continues."""
        # Not taken if this thread is drawing.
        is_idle = self._output.acquire(timeout=_DRAWING_SECONDS)
        try:
            self._live.stop() if is_idle else self._write(_SHOW_CURSOR)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            signal.signal(number, self._on_signal)
            if is_idle:
                # What other programs wrote meanwhile stays: a new Live does not know where the rows were.
                self._live = self._create_live()
                self._live.start()
            else:
                self._write(_HIDE_CURSOR)
        finally:
            if is_idle:
                self._output.release()

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()
