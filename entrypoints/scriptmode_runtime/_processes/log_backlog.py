"""The part of a log that could not be written to a full disk: lines are kept, then dropped and counted. Pure.

    empty    --(a write fails)------------> keeping: lines are kept, `_LIMIT` bytes at most
    keeping  --(more than `_LIMIT` bytes)-> dropping: lines are dropped and counted
    keeping, dropping --(a write succeeds)-> empty: the kept lines first, then the number of dropped ones, then new ones


The beginning of a line that was written is always followed by its rest, and a line of which the beginning was dropped
is dropped to its end: no line of the log consists of parts of two.
"""

from __future__ import annotations

#: Bytes that are kept in memory. More output than this is dropped while the disk is full.
_LIMIT = 64 * 1024


class Backlog:
    """Output that waits for free space, in order; ``reason`` is the error's text."""

    def __init__(self) -> None:
        self.reason = ""
        self._kept = b""
        self._lines = 0
        self._bytes = 0
        #: The counts before the last call of `take`, and the notice that it returned.
        self._counted = (0, 0)
        self._notice_taken = b""
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
        self._kept += self._notice()
        self._kept += data
        if len(self._kept) > _LIMIT:
            cut = self._kept.rfind(b"\n", 0, _LIMIT) + 1
            # A line that is longer than the limit, perhaps with its beginning in the log, ends here.
            kept = self._kept[:cut] or self._kept[:_LIMIT] + b"\n"
            rest = self._kept[cut or _LIMIT :]
            self._kept = kept
            self._drop(rest)

    def take(self) -> bytes:
        """Return and remove the output to write next; `restore` puts back the part that was not written."""
        self._counted = (self._lines, self._bytes)
        self._notice_taken = b"" if self._in_dropped_line else self._notice()
        kept, self._kept = self._kept, b""
        return kept + self._notice_taken

    def restore(self, rest: bytes) -> None:
        """Restore the end of what `take` returned; an unwritten notice is dropped, and its counts are restored."""
        if self._notice_taken and len(rest) >= len(self._notice_taken):
            rest = rest[: -len(self._notice_taken)]
            self._lines, self._bytes = self._counted
        self._kept = rest

    def end(self) -> None:
        """Record the end of the output: a line that was dropped up to its middle has ended."""
        if self._in_dropped_line:
            self._lines += 1
            self._in_dropped_line = False

    def _drop(self, data: bytes) -> None:
        if data:
            self._bytes += len(data)
            self._lines += data.count(b"\n")
            self._in_dropped_line = not data.endswith(b"\n")

    def _notice(self) -> bytes:
        if not self._bytes:
            return b""
        lines = f"{self._lines} line{'s' if self._lines != 1 else ''} ({self._bytes} bytes)"
        self._lines = self._bytes = 0
        return f"scriptmode: {lines} of this log could not be written and are missing here: {self.reason}\n".encode()
