"""One line of a terminal that is replaced while something takes long, and erased afterwards."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import AbstractContextManager

from scriptmode_runtime._terminal_line import sanitize

_ERASE = "\r\x1b[K"


class ProgressLine(AbstractContextManager["ProgressLine"]):
    """The last line of a terminal, on the standard error; without a terminal nothing is shown."""

    def __init__(self) -> None:
        self._stream = sys.stderr
        self.is_shown = bool(self._stream and self._stream.isatty() and os.environ.get("TERM") != "dumb")
        self._is_empty = True

    def show(self, text: str) -> None:
        """Replace the line; what is wider than the terminal is left out."""
        if self.is_shown:
            self._stream.write(_ERASE + sanitize(text)[: shutil.get_terminal_size().columns - 1])
            self._stream.flush()
            self._is_empty = False

    def clear(self) -> None:
        """Erase the line, for what is printed next."""
        if not self._is_empty:
            self._stream.write(_ERASE)
            self._stream.flush()
            self._is_empty = True

    def __exit__(self, *_: object) -> None:
        self.clear()
