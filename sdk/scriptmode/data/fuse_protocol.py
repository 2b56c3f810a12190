"""The FUSE protocol between the kernel and the server of a file system, as far as a read-only one needs it. Pure.

Layouts and numbers are those of Linux's ``include/uapi/linux/fuse.h``, whose ABI only ever grows; version 7.23 (Linux
3.15) is the oldest spoken here.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from stat import S_IFMT
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

MAJOR, MINOR, OLDEST_MINOR = 7, 31, 23
#: The number of a file system's own folder.
ROOT = 1
#: What a read from the device must have room for: no request here is larger, for none carries data.
REQUEST_BYTES = 64 * 1024
#: Pages of the largest read.
MAX_PAGES = 256

_KEEP_CACHE, _CACHE_FOLDER = 2, 8
# Reads at once and ahead; folders listed with attributes; lookups in parallel; larger reads; links remembered.
_ASYNC_READ, _AUTO_INVALIDATE, _READDIRPLUS, _READDIRPLUS_AUTO = 1 << 0, 1 << 12, 1 << 13, 1 << 14
_PARALLEL_FOLDERS, _MAX_PAGES, _CACHE_LINKS = 1 << 18, 1 << 22, 1 << 23
_WANTED = _ASYNC_READ | _AUTO_INVALIDATE | _READDIRPLUS | _READDIRPLUS_AUTO | _PARALLEL_FOLDERS | _MAX_PAGES
_WANTED |= _CACHE_LINKS
#: Requests of read-ahead that the kernel has on their way at most.
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
_FOLDER_ENTRY = struct.Struct("=QQII")
_FORGET_ONE = struct.Struct("=QQ")
_STATFS = struct.Struct("=5Q4I24x")
_NUMBER = struct.Struct("=Q")
#: What an entry of READDIRPLUS has beside its name.
ENTRY_BYTES = _ENTRY.size + _ATTRIBUTES.size
#: The kernel's own unit of ``blocks``.
_BLOCK = 512


class Operation(IntEnum):
    """What the kernel asks for; the rest is answered with ENOSYS, which it remembers."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    READLINK = 5
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


#: SETATTR, SYMLINK, MKNOD, MKDIR, UNLINK, RMDIR, RENAME, LINK, WRITE, SETXATTR, REMOVEXATTR, CREATE, FALLOCATE,
#: RENAME2: the kernel refuses them for a read-only mount before the server sees them.
WRITING = frozenset({4, 6, 8, 9, 10, 11, 12, 13, 16, 21, 24, 35, 43, 45})


class Request(NamedTuple):
    """One request: ``unique`` is what its answer names."""

    operation: int
    unique: int
    #: The node it is about.
    number: int
    #: The thread that asks; 0 for read-ahead.
    pid: int
    body: bytes


class Read(NamedTuple):
    """What READ, READDIR and READDIRPLUS ask for."""

    handle: int
    offset: int
    size: int


class Node(NamedTuple):
    """A file, folder or link: its number and what stat(2) says of it."""

    number: int
    mode: int
    size: int
    modified_ns: int
    uid: int
    gid: int
    links: int = 1
    device: int = 0


class Name(NamedTuple):
    """A folder's entry; of ``mode`` only the kind counts."""

    name: bytes
    number: int
    mode: int


def request(data: bytes) -> Request:
    """Read what the device gave."""
    _, operation, unique, number, _, _, pid, _ = _IN_HEADER.unpack_from(data)
    return Request(operation, unique, number, pid, data[_IN_HEADER.size :])


def name(body: bytes) -> bytes:
    """Read LOOKUP's name."""
    return body.partition(b"\0")[0]


def read(body: bytes) -> Read:
    """Read which bytes are wanted."""
    return Read(*_READ.unpack_from(body))


def number(body: bytes) -> int:
    """Read the one number that RELEASE, RELEASEDIR, FORGET and INTERRUPT begin with."""
    return int(_NUMBER.unpack_from(body)[0])


def forgotten(body: bytes) -> Iterable[tuple[int, int]]:
    """Read BATCH_FORGET: nodes and how many of their look-ups are over."""
    return _FORGET_ONE.iter_unpack(body[8 : 8 + _FORGET_ONE.size * struct.unpack_from("=I", body)[0]])


def header(unique: int, size: int, error: int = 0) -> bytes:
    """Give what an answer of ``size`` bytes, or an error's number, begins with."""
    return _OUT_HEADER.pack(_OUT_HEADER.size + size, -error, unique)


def init(body: bytes) -> bytes | None:
    """Answer INIT; None for a kernel whose protocol is too old."""
    major, minor, read_ahead, flags = _INIT_IN.unpack_from(body)
    if (major, minor) < (MAJOR, OLDEST_MINOR):
        return None
    return _INIT_OUT.pack(
        MAJOR, MINOR, read_ahead, flags & _WANTED, _BACKGROUND, _BACKGROUND, _LARGEST_WRITE, 1, MAX_PAGES, 0, 0
    )


def entry(node: Node, seconds: float) -> bytes:
    """Answer LOOKUP; the kernel may keep it for ``seconds``."""
    whole, nanoseconds = _time(seconds)
    return _ENTRY.pack(node.number, 0, whole, whole, nanoseconds, nanoseconds) + _attributes(node)


def no_entry(seconds: float) -> bytes:
    """Answer LOOKUP of what is not there, for so long."""
    whole, nanoseconds = _time(seconds)
    return _ENTRY.pack(0, 0, whole, 0, nanoseconds, 0) + bytes(_ATTRIBUTES.size)


def attributes(node: Node, seconds: float) -> bytes:
    """Answer GETATTR."""
    return _ATTRIBUTES_OUT.pack(*_time(seconds), 0) + _attributes(node)


def opened(handle: int, *, keep: bool) -> bytes:
    """Answer OPEN and OPENDIR; with ``keep`` what the kernel has cached of it stays valid."""
    return _OPENED.pack(handle, _KEEP_CACHE | _CACHE_FOLDER if keep else 0, 0)


def statfs(files: int) -> bytes:
    """Answer STATFS: a full file system."""
    return _STATFS.pack(0, 0, 0, files, 0, 4096, 1024, 4096, 0)


def folder_entry(found: Name, offset: int) -> bytes:
    """Give an entry of READDIR's answer; ``offset`` is where the next one begins."""
    record = _FOLDER_ENTRY.pack(found.number, offset, len(found.name), S_IFMT(found.mode) >> 12) + found.name
    return record + bytes(-len(record) % 8)


def _attributes(node: Node) -> bytes:
    whole, rest = divmod(node.modified_ns, 10**9)
    whole %= 1 << 64
    return _ATTRIBUTES.pack(
        *(node.number, node.size, -(-node.size // _BLOCK), whole, whole, whole, rest, rest, rest),
        *(node.mode, node.links, node.uid, node.gid, node.device, 4096, 0),
    )


def _time(seconds: float) -> tuple[int, int]:
    return int(seconds), int(seconds % 1 * 10**9)
