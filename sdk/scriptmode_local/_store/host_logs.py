"""Reading of host logs as lines, while they are written, and the lines that the agent adds."""

from __future__ import annotations

import codecs
import os
import re
import sys
import time
from contextlib import suppress
from itertools import repeat
from typing import TYPE_CHECKING, BinaryIO

from scriptmode._core.spec.service_values import JobEvent
from scriptmode._core.text.messages import format_bytes
from scriptmode_local._data.regular_files import open_regular, open_to_append
from scriptmode_runtime._terminal_line import last_frame, overwritten

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from scriptmode_local._store.state import JobState

#: Bytes of one read, and at most of one piece of a line. It bounds the memory that a reader needs for a log.
CHUNK = 1024 * 1024
_MISSING = b"and are missing here:"
#: The line that the runtime's `log_backlog` leaves where lines are missing.
_LOSS = re.compile(
    rb"(?m)^scriptmode: (\d{1,18}) lines? \((\d{1,18}) bytes\) of this log could not be written "
    + _MISSING
    + rb" (.*)$"
)
#: Begins the line between two runs of the same job.
STARTS_AGAIN = "scriptmode: the job starts again"
#: Bytes read of an unfinished line: some frames of a progress bar.
_UNFINISHED = 8 * 1024


def append_line(path: Path, line: str) -> None:
    """Append a separate line to a log whose last line may lack its line feed; raise ``OSError``."""
    with open_to_append(path) as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - 1))
        start = b"" if log.read(1) in (b"", b"\n") else b"\n"
        log.write(start + line.encode("utf-8", "replace") + b"\n")


class AgentLog:
    """Log of a job's agent, which is its standard error; what users should read is in the hosts' logs, too."""

    def __init__(self, log_of: Callable[[str], Path], hosts: Collection[str]) -> None:
        self._log_of = log_of
        self._hosts = hosts

    def write(self, text: str) -> None:
        """Write a line; the agent made ``sys.stderr`` a stream whose writes never fail."""
        sys.stderr.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
        sys.stderr.flush()

    def tell_user(self, text: str) -> None:
        """Write a line, also to the first host's log, after the output of the host itself."""
        self.tell_host(next(iter(self._hosts)), text)

    def tell_host(self, host: str, text: str) -> None:
        """Write a line, also to a host's log if that can be written."""
        self.write(text)
        with suppress(OSError):
            append_line(self._log_of(host), f"scriptmode: {text}")


def describe_loss(path: Path, host: str) -> str:
    """Return what of a log could not be written, from the notices that the launcher left in it; "" for a whole log."""
    lines = count = 0
    reason = ""
    with suppress(OSError), open_regular(path) as file:
        for notice in _find_notices(file):
            lines, count = lines + int(notice[1]), count + int(notice[2])
            reason = notice[3].decode("utf-8", "replace").strip()
    amount = f"{lines:,} line{'s' * (lines != 1)} ({format_bytes(count)})"
    return f"{amount} of the log of {host} could not be written: {reason}" if count else ""


def with_losses(state: JobState, logs: Mapping[str, Path]) -> JobState:
    """Return the state with an event for each log, by host, from which lines are missing."""
    for host, path in logs.items():
        if text := describe_loss(path, host):
            state = state.with_event(JobEvent("LogLost", text, host, time=time.time()))
    return state


def _find_notices(file: BinaryIO) -> Iterator[re.Match[bytes]]:
    rest = b""
    while chunk := file.read(CHUNK):
        text = rest + chunk
        end = text.rfind(b"\n") + 1
        # The expression alone takes more than ten times as long.
        if _MISSING in text:
            yield from _LOSS.finditer(text, 0, end)
        rest = text[end:][-_UNFINISHED:]
    yield from _LOSS.finditer(rest)


class LogReader:
    """Reader of one host's log. A line ends with a line feed; carriage returns of a progress bar are part of it.

    Of a line of more than `CHUNK` bytes the frames that the line itself overwrites are skipped; one without such frames
    is returned in pieces. So memory does not grow with it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        #: The part of the incomplete line that was not yielded yet; less than a chunk.
        self._begun = b""
        #: The bytes of one character may be divided between two pieces.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_divided = False

    def lines(self, *, final: bool) -> Iterator[tuple[str, bool]]:
        """Yield the lines completed since the last call, each with whether the next one continues it.

        With ``final`` also the text after the last line feed. Raises ``OSError`` for a log that is not a regular file
        or cannot be read.
        """
        if self._file is None:
            with suppress(FileNotFoundError):
                self._file = open_regular(self._path)
        while self._file is not None and (chunk := self._file.read(CHUNK)):
            whole, feed, begun = chunk.rpartition(b"\n")
            if feed:
                whole, self._begun = self._begun + whole, b""
                more = feed
                if self._is_divided:
                    first, more, whole = whole.partition(b"\n")
                    yield self._ended(first)
                if more:
                    # Decoded together, which takes half the time of decoding line by line.
                    yield from zip(whole.decode("utf-8", "replace").split("\n"), repeat(object=False))
            self._begun += begun
            if len(self._begun) > CHUNK:
                self._begun = self._begun[overwritten(self._begun) :]
            if len(self._begun) > CHUNK:
                yield self._decoder.decode(self._begun), True
                self._begun, self._is_divided = b"", True
        if final and (self._begun or self._is_divided):
            rest, self._begun = self._begun, b""
            yield self._ended(rest)

    def _ended(self, rest: bytes) -> tuple[str, bool]:
        if not self._is_divided:
            return rest.decode("utf-8", "replace"), False
        text = self._decoder.decode(rest, final=True)
        self._decoder.reset()
        self._is_divided = False
        return text, False

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def unfinished_line(path: Path) -> str:
    """Return the end of a log after its last line feed: what a progress bar drew last; "" without a log.

    Of a long line the last `_UNFINISHED` bytes are returned, from a carriage return on where they have one.
    """
    with suppress(OSError), open_regular(path) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _UNFINISHED))
        end = file.read(_UNFINISHED)
        line = end.rpartition(b"\n")[2]
        if len(line) == _UNFINISHED:
            line = line[max(0, line.find(b"\r")) :]
        return line.decode("utf-8", "replace")
    return ""


def last_lines(path: Path, lines: int, limit: int) -> str:
    """Return the end of a text file: at most ``lines`` whole lines and ``limit`` characters; "" when there is no file.

    Of a line with frames the last one is returned. Only a last line that is longer than ``limit`` is cut, at its start.
    """
    with suppress(OSError), open_regular(path) as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 4 * limit))
        text = "\n".join(map(last_frame, file.read().decode("utf-8", "replace").strip().split("\n")[-lines:]))
        if len(text) > limit:
            end = text[-limit:]
            _, newline, whole = end.partition("\n")
            text = end if text[-limit - 1] == "\n" or not newline else whole
        return text
    return ""
