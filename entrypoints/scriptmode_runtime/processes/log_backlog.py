"""The part of a log that its full disk does not take: whole lines are kept, then dropped and counted. Pure.

    every write succeeds -> (a write fails) -> lines are kept, at most `_LIMIT` bytes
                         -> (no room to keep more) -> lines are dropped and counted
    a write succeeds     -> what was kept goes first, then the number of dropped lines, then what follows

The beginning of a line that was written is always followed by its rest, and a line of which the beginning was dropped
is dropped to its end: no line of the log is made of two.
"""

from __future__ import annotations

#: Bytes that are kept in memory. What exceeds it while the disk is full is dropped.
_LIMIT = 64 * 1024


class Backlog:
    """What waits for room, in order; ``reason`` is the error's text."""

    def __init__(self) -> None:
        self.reason = ""
        self._kept = b""
        self._lines = 0
        self._bytes = 0
        #: What `take` returned last: the counts before it, and the notice.
        self._counted = (0, 0)
        self._notice_taken = b""
        #: Whether the line that was dropped last goes on with what comes next.
        self._in_dropped_line = False

    def __bool__(self) -> bool:
        """Return whether what comes next cannot be written right away."""
        return bool(self._kept or self._bytes or self._in_dropped_line)

    def add(self, data: bytes) -> None:
        """Keep or drop what comes next."""
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
            # A line that is longer than what can be kept, perhaps with its beginning in the log, ends here.
            kept = self._kept[:cut] or self._kept[:_LIMIT] + b"\n"
            rest = self._kept[cut or _LIMIT :]
            self._kept = kept
            self._drop(rest)

    def take(self) -> bytes:
        """Return what to write next, and hold it no more; `restore` takes back what was not written of it."""
        self._counted = (self._lines, self._bytes)
        self._notice_taken = b"" if self._in_dropped_line else self._notice()
        kept, self._kept = self._kept, b""
        return kept + self._notice_taken

    def restore(self, rest: bytes) -> None:
        """Take back the end of what `take` returned; a notice of which nothing was written may count more next time."""
        if self._notice_taken and len(rest) >= len(self._notice_taken):
            rest = rest[: -len(self._notice_taken)]
            self._lines, self._bytes = self._counted
        self._kept = rest

    def end(self) -> None:
        """Note that nothing comes any more: a line that was dropped to its middle is over."""
        if self._in_dropped_line:
            self._lines += 1
            self._in_dropped_line = False

    def final_notice(self, overwritten: bytes) -> bytes:
        """Return the notice for a log that took no more until its end, in place of its ``overwritten`` last lines."""
        import re

        text, self._kept = overwritten + self._kept, b""
        for notice in re.finditer(rb"(?m)^scriptmode: (\d+) lines? \((\d+) bytes\) of this log .*\n", text):
            # What it counts is missing now, and the notice itself is not needed any more.
            self._lines += int(notice[1]) - 1
            self._bytes += int(notice[2]) - len(notice[0])
        self._drop(text)
        self.end()
        return self._notice()

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
