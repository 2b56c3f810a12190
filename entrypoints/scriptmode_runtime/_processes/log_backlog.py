"""The part of a log that could not be written to a full disk: lines are kept, then dropped and counted. Pure.

    empty    --(a write fails)------------> keeping: lines are kept, `_LIMIT` bytes at most
    keeping  --(more than `_LIMIT` bytes)-> dropping: lines are dropped and counted
    keeping, dropping --(a write succeeds)-> empty: the kept lines first, then the number of dropped ones, then new ones
    keeping, dropping --(the last write fails)-> empty: the number of all of them replaces the log's last lines

The beginning of a line that was written is followed by its rest, or at the log's end by the notice, and a line of which
the beginning was dropped is dropped to its end: no line of the log consists of parts of two.
"""

from __future__ import annotations

import re
from collections.abc import Callable

#: Words of a notice, and a notice: the numbers of lines and bytes, and the error's text.
MISSING = b"of this log could not be written and are missing here:"
NOTICE = re.compile(rb"(?m)^scriptmode: (\d{1,18}) lines? \((\d{1,18}) bytes\) %b (.*)\n?" % MISSING)
#: Bytes that are kept in memory. More output than this is dropped while the disk is full.
_LIMIT = 64 * 1024


class Backlog:
    """Output that waits for free space, in order; ``reason`` is the error's text."""

    def __init__(self) -> None:
        self.reason = ""
        self._kept = b""
        self._lines = 0
        self._bytes = 0
        #: Whether the next output continues the line that was dropped last.
        self._in_dropped_line = False

    def __bool__(self) -> bool:
        """Return whether new output has to wait."""
        return bool(self._kept or self._bytes or self._in_dropped_line)

    def add(self, data: bytes) -> None:
        """Keep or drop new output."""
        if self._bytes and self._kept:
            self._drop(data)
            return
        if self._in_dropped_line:
            head, newline, data = data.partition(b"\n")
            self._drop(head + newline)
            if not newline:
                return
        self._kept += self._notice() + data
        if len(self._kept) > _LIMIT:
            cut = self._kept.rfind(b"\n", 0, _LIMIT) + 1
            # A line that is longer than the limit, perhaps with its beginning in the log, ends here.
            self._drop(self._kept[cut or _LIMIT :])
            self._kept = self._kept[:cut] or self._kept[:_LIMIT] + b"\n"

    def write(self, write: Callable[[bytes], bytes]) -> None:
        """Write the kept lines and the notice by ``write``, which returns the rest that it could not write."""
        notice = b"" if self._in_dropped_line else self._notice()
        rest = write(self._kept + notice)
        self._kept = rest.removesuffix(notice)
        if len(self._kept) < len(rest):
            # A notice that was not written whole: what it counts is still missing.
            self._drop(notice)

    def end(self) -> None:
        """Record the end of the output: a line that was dropped up to its middle has ended."""
        if self._in_dropped_line:
            self._lines += 1
            self._in_dropped_line = False

    def replace(self, last: bytes) -> bytes:
        """Return the notice that takes the place of ``last``, the last lines of the log, and of all that waits."""
        self._drop(last + self._kept)
        self.end()
        return self._notice()

    def _drop(self, data: bytes) -> None:
        if MISSING in data:
            for notice in NOTICE.finditer(data):
                self._lines += int(notice[1])
                self._bytes += int(notice[2])
            data = NOTICE.sub(b"", data)
        if data:
            self._bytes += len(data)
            self._lines += data.count(b"\n")
            self._in_dropped_line = not data.endswith(b"\n")

    def _notice(self) -> bytes:
        if not self._bytes:
            return b""
        lines = f"{self._lines} line{'s' if self._lines != 1 else ''} ({self._bytes} bytes)"
        self._lines = self._bytes = 0
        return b"scriptmode: %b %b %b\n" % (lines.encode(), MISSING, self.reason.encode())
