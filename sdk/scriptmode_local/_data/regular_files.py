"""Open the files of a job's directory, whatever is in them, and render those that are read again.

A power cut, a full disk or another program may have left them empty, garbled, or of another kind. Every function here
returns what was asked for or raises ``OSError`` or ``ValueError``, and none of them waits: a FIFO in a file's place is
opened without blocking and refused.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

#: Bytes of the largest record: what is known of 500,000 checkpoints. The service's largest request has less than 1 MB.
MOST_BYTES = 64 * 1024 * 1024
#: Levels of nesting of the deepest record, far from Python's limit of recursion; a request has about ten.
MOST_LEVELS = 50
#: Digits of the longest whole number: more than 64 bits have.
_MOST_DIGITS = 20
_CHUNK = 1024 * 1024
#: Seconds after a change of a directory in which another one may leave it with the same version: the clocks of file
#: systems advance in steps.
_UNSETTLED_SECONDS = 2.0


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; raise ``OSError`` for anything else, without waiting for a FIFO's writer."""
    return os.fdopen(_open(path), "rb")


def open_to_append(path: Path) -> BinaryIO:
    """Open a regular file for reading and for writing at its end; one that is missing is created.

    Raises ``OSError`` for anything else: a FIFO's reader is not waited for.
    """
    descriptor = _open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    # Programs inherit it as their output.
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "ab+")


def read_bytes(path: Path) -> bytes:
    """Return a regular file's content of at most `MOST_BYTES` bytes."""
    # Thousands of files are read in a second: no file object is made for them.
    descriptor = _open(path)
    try:
        # A larger file is not read at all; one that grows meanwhile is read up to the limit.
        is_large = os.fstat(descriptor).st_size > MOST_BYTES
        chunks, size = [], 0
        while not is_large and (chunk := os.read(descriptor, _CHUNK)):
            chunks.append(chunk)
            size += len(chunk)
            is_large = size > MOST_BYTES
    finally:
        os.close(descriptor)
    if is_large:
        raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    return b"".join(chunks)


def read_json(path: Path) -> Any:
    """Return a file's JSON value, whose text can be written again."""
    return parse_json(read_bytes(path))


def settled_version(descriptor: int) -> tuple[int, ...] | None:
    """Return what every change of an open directory changes; None so soon after one that the next may not."""
    status = os.fstat(descriptor)
    version = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return version if time.time() - status.st_ctime > _UNSETTLED_SECONDS else None


def parse_json(content: bytes) -> Any:
    """Return the JSON value of a file's content, as `read_json` does."""
    if not content.strip(b" \t\r\n\0"):
        raise ValueError("it is empty")
    try:
        value = json.loads(content, parse_int=_whole_number)
        if b"\\ud" in content.lower():
            # No file has a surrogate in its name but those that stand for bytes that are not UTF-8.
            json.dumps(value, ensure_ascii=False).encode(errors="surrogateescape")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is damaged: {error}") from error
    if content.count(b"[") + content.count(b"{") > MOST_LEVELS and _is_deeper(value, MOST_LEVELS):
        raise ValueError("it is nested too deeply")
    return value


def render_json(value: object, parse: Callable[[Any, str], Any] = lambda content, _: content, name: str = "") -> bytes:
    """Return a record's content; raise what ``parse(value, name)`` raises for what will be read."""
    content = json.dumps(value, indent=1).encode()
    parse(parse_json(content), name)
    return content


def _open(path: Path, flags: int = os.O_RDONLY) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o666)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    raise OSError("it is not a regular file")


def _whole_number(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits")
    return int(digits)


def _is_deeper(value: object, levels: int) -> bool:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return not levels or any(_is_deeper(member, levels - 1) for member in members)
