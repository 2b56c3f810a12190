"""The FUSE protocol between the kernel and the server of a tree that never changes: parse requests, render replies.

Pure. Layouts and numbers are those of Linux's ``include/uapi/linux/fuse.h``, whose ABI only ever grows; version 7.23
(Linux 3.15) is the oldest supported.

It is here because a library costs more CPU of the cores that the server shares with the training: a binding such as
mfusepy adds a call through ctypes and a copy to each read, and cannot return a listing with its attributes. libfuse's
high-level interface also keeps a thread for each pending read: as many slow objects delay all others.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from stat import S_IFMT
from typing import NamedTuple

MAJOR, MINOR, OLDEST_MINOR = 7, 31, 23
#: Bytes of the buffer for a request: none is larger, for none carries data.
REQUEST_BYTES = 64 * 1024
#: Pages of the largest read.
MAX_PAGES = 256

#: Seconds for which the kernel may cache names and attributes: as long as any job runs.
_CACHE_SECONDS = 10 * 365 * 24 * 3600
_KEEP_CACHE, _CACHE_DIRECTORY = 2, 8
# Parallel reads and read-ahead; listings with attributes; parallel lookups; larger reads.
_ASYNC_READ, _AUTO_INVALIDATE, _READDIRPLUS, _READDIRPLUS_AUTO = 1 << 0, 1 << 12, 1 << 13, 1 << 14
_PARALLEL_DIRECTORIES, _MAX_PAGES = 1 << 18, 1 << 22
_WANTED = _ASYNC_READ | _AUTO_INVALIDATE | _READDIRPLUS | _READDIRPLUS_AUTO | _PARALLEL_DIRECTORIES | _MAX_PAGES
#: Read-ahead requests that the kernel may have pending.
_BACKGROUND = 64
_LARGEST_WRITE = 4096

_IN_HEADER = struct.Struct("=IIQQIIII")
_OUT_HEADER = struct.Struct("=IiQ")
_ATTRIBUTES = struct.Struct("=6Q10I")
_ENTRY = struct.Struct("=4Q2I")
_ATTRIBUTES_OUT = struct.Struct("=QII")
_OPENED = struct.Struct("=QII")
_READ = struct.Struct("=QQI")
_INIT_IN = struct.Struct("=IIII")
_INIT_OUT = struct.Struct("=IIIIHHIIHHI28x")
_DIRECTORY_ENTRY = struct.Struct("=QQII")
_STATFS = struct.Struct("=5Q4I24x")
_NUMBER = struct.Struct("=Q")
#: Bytes of an entry of READDIRPLUS before its READDIR part.
ENTRY_BYTES = _ENTRY.size + _ATTRIBUTES.size
#: The kernel's own unit of ``blocks``.
_BLOCK = 512


class Operation(IntEnum):
    """Operations of the protocol; the reply to others is ENOSYS, which the kernel remembers."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    OPEN = 14
    READ = 15
    STATFS = 17
    RELEASE = 18
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    INTERRUPT = 36
    DESTROY = 38
    BATCH_FORGET = 42
    READDIRPLUS = 44


class Request(NamedTuple):
    """One request; its reply has the same ``unique``."""

    operation: int
    unique: int
    #: Of the node that the request is for.
    number: int
    #: Of the calling thread; 0 for read-ahead.
    pid: int
    body: bytes


class Node(NamedTuple):
    """A file or directory: its number and its fields of stat(2)."""

    number: int
    mode: int
    size: int
    modified_ns: int
    uid: int
    gid: int
    links: int = 1


class Name(NamedTuple):
    """A directory's entry; of ``mode`` only the file type is used."""

    name: bytes
    number: int
    mode: int


def parse_request(data: bytes) -> Request:
    """Parse a request from the device."""
    _, operation, unique, number, _, _, pid, _ = _IN_HEADER.unpack_from(data)
    return Request(operation, unique, number, pid, data[_IN_HEADER.size :])


def parse_read(body: bytes) -> tuple[int, int, int]:
    """Parse the body of READ, READDIR and READDIRPLUS: a handle, an offset and a size."""
    handle, offset, size = _READ.unpack_from(body)
    return handle, offset, size


def parse_number(body: bytes) -> int:
    """Parse the number that RELEASE, RELEASEDIR and INTERRUPT begin with."""
    return int(_NUMBER.unpack_from(body)[0])


def render_header(unique: int, size: int, error: int = 0) -> bytes:
    """Render the header of a reply with ``size`` bytes, or with an error number."""
    return _OUT_HEADER.pack(_OUT_HEADER.size + size, -error, unique)


def render_init(body: bytes) -> bytes | None:
    """Render the reply to INIT; None for a kernel whose protocol is too old."""
    major, minor, read_ahead, flags = _INIT_IN.unpack_from(body)
    if (major, minor) < (MAJOR, OLDEST_MINOR):
        return None
    return _INIT_OUT.pack(
        MAJOR, MINOR, read_ahead, flags & _WANTED, _BACKGROUND, _BACKGROUND, _LARGEST_WRITE, 1, MAX_PAGES, 0, 0
    )


def render_entry(node: Node | None) -> bytes:
    """Render the reply to LOOKUP; ``None`` is that of a missing name."""
    if node is None:
        return _ENTRY.pack(0, 0, _CACHE_SECONDS, 0, 0, 0) + bytes(_ATTRIBUTES.size)
    return _ENTRY.pack(node.number, 0, _CACHE_SECONDS, _CACHE_SECONDS, 0, 0) + _attributes(node)


def render_attributes(node: Node) -> bytes:
    """Render the reply to GETATTR."""
    return _ATTRIBUTES_OUT.pack(_CACHE_SECONDS, 0, 0) + _attributes(node)


def render_opened(handle: int) -> bytes:
    """Render the reply to OPEN and OPENDIR; what the kernel has cached stays valid."""
    return _OPENED.pack(handle, _KEEP_CACHE | _CACHE_DIRECTORY, 0)


def render_statfs(files: int) -> bytes:
    """Render the reply to STATFS: a full file system."""
    return _STATFS.pack(0, 0, 0, files, 0, 4096, 1024, 4096, 0)


def render_directory_entry(entry: Name, offset: int) -> bytes:
    """Render an entry of READDIR's reply; ``offset`` is that of the next entry."""
    record = _DIRECTORY_ENTRY.pack(entry.number, offset, len(entry.name), S_IFMT(entry.mode) >> 12) + entry.name
    return record + bytes(-len(record) % 8)


def _attributes(node: Node) -> bytes:
    whole, rest = divmod(node.modified_ns, 10**9)
    return _ATTRIBUTES.pack(
        *(node.number, node.size, -(-node.size // _BLOCK), whole, whole, whole, rest, rest, rest),
        *(node.mode, node.links, node.uid, node.gid, 0, 4096, 0),
    )
