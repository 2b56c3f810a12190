"""Pages of a log's lines with their times, forwards and backwards from an offset of the file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from scriptmode_local._data.regular_files import open_regular
from scriptmode_runtime._terminal_line import overwritten

if TYPE_CHECKING:
    from scriptmode_local._store.log_times import LogTimes

#: The most lines and bytes of a page (GetLogEvents, CloudWatch Logs API reference).
MOST_LINES, MOST_BYTES = 10_000, 1024 * 1024
#: Bytes of one event (PutLogEvents, 256 KB less 26 bytes for each event). A longer line is several events, or the last
#: frames of a progress bar.
_LONGEST_LINE = 256 * 1024 - 26
_CHUNK = 64 * 1024


class Line(NamedTuple):
    """One line of a log: its offsets in the file, the second one after its end, its time in ms, and its text."""

    start: int
    end: int
    time: int
    text: str


class LogFile(NamedTuple):
    """A log with the times of its lines.

    Attributes:
        times: The times of its lines.
        length: The bytes whose times are known.
        is_complete: Whether the text after the last line feed is a line, too: the job has ended.
    """

    times: LogTimes
    length: int
    is_complete: bool

    @property
    def span(self) -> tuple[int, int]:
        """The times of the first and of the last line."""
        return self.times.span

    def forwards(self, offset: int) -> Iterator[Line]:
        """Yield the lines from an offset on, which is that of a line's beginning."""
        with open_regular(self.times.log) as file:
            file.seek(offset)
            while offset < self.length:
                content = file.readline(min(_LONGEST_LINE, self.length - offset))
                if len(content) == _LONGEST_LINE and (skipped := overwritten(content)):
                    offset += skipped
                    file.seek(offset)
                    continue
                is_whole = content.endswith(b"\n") or len(content) == _LONGEST_LINE
                if not content or not (is_whole or self.is_complete):
                    return
                end = offset + len(content)
                text = content.decode("utf-8", "replace").rstrip("\n")
                yield Line(offset, end, self.times.time_of(end), text)
                offset = end

    def start_at(self, moment: int) -> int:
        """Return the offset of the first line that may be as new as ``moment``, in milliseconds."""
        # The log may have been measured in the middle of a line: go back to where it begins.
        end = self.times.end_before(moment)
        return self.start_of_page(end, 1) if end else 0

    def start_of_page(self, end: int, limit: int) -> int:
        """Return where a page begins whose last line ends at the offset ``end``."""
        start = max(0, end - MOST_BYTES)
        with open_regular(self.times.log) as file:
            beginnings = (feed + 1 for feed in _line_feeds(file, start, end) if feed + 1 != end)
            beginning = next(itertools.islice(beginnings, limit - 1, None), None)
            if beginning is not None or start == 0:
                return beginning or 0
            file.seek(start)
            next_line = start + len(file.readline())
        return next_line if next_line < end else start

    def end(self, until: int = 1 << 62) -> int:
        """Return the offset after the last line that is older than ``until``."""
        length = min(self.length, self.times.end_before(until))
        if self.is_complete and length == self.length:
            return length
        with open_regular(self.times.log) as file:
            return next(_line_feeds(file, 0, length), -1) + 1


def _line_feeds(file: BinaryIO, start: int, end: int) -> Iterator[int]:
    """Yield the offsets of the line feeds from ``start`` up to ``end``, the last one first."""
    while end > start:
        position = max(start, end - _CHUNK)
        file.seek(position)
        content = file.read(end - position)
        at = content.rfind(b"\n")
        while at >= 0:
            yield position + at
            at = content.rfind(b"\n", 0, at)
        end = position
