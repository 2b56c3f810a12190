"""Host logs as lines, read while they are written."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO

from scriptmode.platforms.local.records import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK = 1024 * 1024


class LogReader:
    """One host's log. A line is what ends with a line feed: a progress bar's carriage returns stay within it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._begun: list[bytes] = []

    def lines(self, *, final: bool) -> Iterator[str]:
        """Yield the lines completed since the last call; with ``final`` also what no line feed ended.

        Raises ``OSError`` for what is not a regular file or cannot be read.
        """
        if self._file is None:
            with suppress(FileNotFoundError):
                self._file = open_regular(self._path)
        while self._file is not None and (chunk := self._file.read(CHUNK)):
            whole, feed, begun = chunk.rpartition(b"\n")
            if feed:
                yield from (b"".join(self._begun) + whole).decode("utf-8", "replace").split("\n")
                self._begun = []
            if begun:
                self._begun.append(begun)
        if final and self._begun:
            yield b"".join(self._begun).decode("utf-8", "replace")
            self._begun = []

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
