"""The server of a read-only FUSE file system: it replies to the kernel's requests.

One thread reads the requests and replies at once where it can. A read of bytes that must be fetched is replied to by
the thread that fetched them, so that a slow object delays no other reader. A third one replies to reads whose store has
been silent for `file_prefetch.STALL_SECONDS`; where the first thread itself hangs, it ends the process: the kernel then
replies to all requests.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Callable, TypeVar

from scriptmode.errors import DataError, ScriptmodeError
from scriptmode_local._data import file_prefetch, fuse_protocol, mounts
from scriptmode_local._data.fuse_protocol import Name, Operation, Request
from scriptmode_runtime._processes import proc

if TYPE_CHECKING:
    from pathlib import Path

    from scriptmode_local._data.fast_file import ObjectTree
    from scriptmode_local._data.file_prefetch import Content, PrefetchedFile
    from scriptmode_local._data.object_store import Buffer

_Opened = TypeVar("_Opened")
#: How many times within the limit of a read it is compared with the limit.
_LOOKS = 24
#: Seconds that a thread keeps the interpreter lock: readers wait for the thread that answers the kernel.
SWITCH_SECONDS = 0.0005


def mount(tree: ObjectTree, mount_point: Path, report: Callable[[str], None], ready: Callable[[], None]) -> None:
    """Mount ``tree`` at an empty directory and serve it until it is unmounted, on the threads of this process.

    ``ready`` is called once it is mounted; ``report`` gets a sentence for each object that could not be read. Raises
    `DataError` where mounting is not possible.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    device = mounts.attach(mount_point)
    ready()
    Server(device, tree, report).serve()


@dataclass
class _Read:
    """A read without reply."""

    pid: int
    answer: Callable[[Content], None]
    stalled: Callable[[float], DataError | None] | None = None


class Server:
    """The server of ``tree`` over a descriptor of /dev/fuse; ``report`` is called once for each different error."""

    def __init__(self, device: int, tree: ObjectTree, report: Callable[[str], None]) -> None:
        self._device = device
        self._tree = tree
        self._report = report
        self._reported: set[str] = set()
        self._files: dict[int, PrefetchedFile] = {}
        self._directories: dict[int, Sequence[Name]] = {}
        self._handles = 0
        #: Reads that are pending: the calling threads, and what tells and answers a read without reply.
        self._waiting: dict[int, _Read] = {}
        #: The request that the thread that calls `serve` handles, since when; None while it waits for one.
        self._handled: tuple[Request, float] | None = None
        self._lock = Lock()
        self._handlers: dict[int, Callable[[Request], bytes | None]] = {
            Operation.INIT: self._init,
            Operation.LOOKUP: lambda request: fuse_protocol.render_entry(
                tree.lookup(request.number, request.body.partition(b"\0")[0])
            ),
            Operation.GETATTR: lambda request: fuse_protocol.render_attributes(tree.node(request.number)),
            Operation.OPEN: lambda request: self._add(self._files, tree.open(request.number)),
            Operation.READ: self._read,
            Operation.RELEASE: self._release,
            # Kept, because a large directory is read in many parts.
            Operation.OPENDIR: lambda request: self._add(self._directories, tree.names(request.number)),
            Operation.READDIR: self._list,
            Operation.READDIRPLUS: self._list,
            Operation.RELEASEDIR: self._release_directory,
            Operation.STATFS: lambda _: fuse_protocol.render_statfs(tree.count()),
            # Without a reply; the numbers of nodes are never used again.
            Operation.FORGET: lambda _: None,
            Operation.BATCH_FORGET: lambda _: None,
            Operation.INTERRUPT: self._interrupt,
            Operation.DESTROY: lambda _: b"",
        }

    def serve(self) -> None:
        """Serve requests until the file system is unmounted."""
        ended = Event()
        Thread(target=self._watch, args=(ended,), name="stalls", daemon=True).start()
        try:
            self._serve()
        finally:
            ended.set()

    def _serve(self) -> None:
        while True:
            try:
                request = fuse_protocol.parse_request(os.read(self._device, fuse_protocol.REQUEST_BYTES))
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                # The kernel may withdraw a request between the wake-up and the read.
                if error.errno not in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                    raise
                continue
            self._handled = request, time.monotonic()
            self._answer(request)
            self._handled = None

    def _watch(self, ended: Event) -> None:
        """Stop the reads of stores that hang, until ``ended``, and this process if its first thread hangs."""
        limit = file_prefetch.STALL_SECONDS
        while not ended.wait(limit / _LOOKS):
            with self._lock:
                pending = list(self._waiting.values())
            for read in pending:
                if read.stalled and (error := read.stalled(limit)):
                    read.answer(error)
            handled = self._handled
            if handled and time.monotonic() - handled[1] > limit:
                number = handled[0].operation
                self._report_once(DataError(f"the server of the mount has hung for {limit:.0f} s in request {number}"))
                os._exit(1)

    def _answer(self, request: Request) -> None:
        handler = self._handlers.get(request.operation)
        if handler is None:
            self._refuse(request.unique, errno.ENOSYS)
            return
        try:
            content = handler(request)
        except (DataError, OSError) as error:
            self._refuse(request.unique, self._number(error))
        else:
            if content is not None:
                self._send(request.unique, (content,))

    def _init(self, request: Request) -> bytes:
        content = fuse_protocol.render_init(request.body)
        if content is None:
            raise OSError(errno.EPROTO, "the kernel's FUSE protocol is older than that of Linux 3.15")
        return content

    def _add(self, table: dict[int, _Opened], opened: _Opened) -> bytes:
        self._handles += 1
        table[self._handles] = opened
        return fuse_protocol.render_opened(self._handles)

    def _release(self, request: Request) -> bytes:
        self._files.pop(fuse_protocol.parse_number(request.body)).close()
        return b""

    def _read(self, request: Request) -> None:
        handle, offset, size = fuse_protocol.parse_read(request.body)

        def answer(content: Content) -> None:
            with self._lock:
                if self._waiting.pop(request.unique, None) is None:
                    return
            try:
                if isinstance(content, BaseException):
                    self._refuse(request.unique, self._number(content))
                else:
                    self._send(request.unique, content)
            except Exception as error:  # noqa: BLE001 - the reader waits, and this thread has no caller
                self._report_once(error)
                self._refuse(request.unique, errno.EIO)

        read = _Read(request.pid, answer)
        with self._lock:
            self._waiting[request.unique] = read
        read.stalled = self._files[handle].read(offset, size, answer)

    def _release_directory(self, request: Request) -> bytes:
        self._directories.pop(fuse_protocol.parse_number(request.body))
        return b""

    def _list(self, request: Request) -> bytes:
        handle, start, size = fuse_protocol.parse_read(request.body)
        names = self._directories[handle]
        with_nodes = request.operation == Operation.READDIRPLUS
        answer = bytearray()
        for offset in range(start, len(names)):
            record = fuse_protocol.render_directory_entry(names[offset], offset + 1)
            room = size - len(answer) - len(record)
            if room < (fuse_protocol.ENTRY_BYTES if with_nodes else 0):
                break
            if with_nodes:
                # "." and ".." are listed without attributes: the kernel has them.
                answer += fuse_protocol.render_entry(self._tree.lookup(request.number, names[offset].name))
            answer += record
        return bytes(answer)

    def _interrupt(self, request: Request) -> None:
        """Abort the read of a killed thread; one with another signal continues: reads of files are not interrupted."""
        unique = fuse_protocol.parse_number(request.body)
        with self._lock:
            read = self._waiting.get(unique)
            if read is None or not proc.has_pending(read.pid, signal.SIGKILL):
                return
            del self._waiting[unique]
        self._refuse(unique, errno.EINTR)

    def _number(self, error: BaseException) -> int:
        """Return the error number for the reader; an error without one is reported."""
        if isinstance(error, OSError) and error.errno:
            return error.errno
        self._report_once(error)
        return errno.EIO

    def _report_once(self, error: BaseException) -> None:
        message = str(error) if isinstance(error, ScriptmodeError) else f"{type(error).__name__}: {error}"
        with self._lock:
            is_new = message not in self._reported
            self._reported.add(message)
        if is_new:
            self._report(message)

    def _refuse(self, unique: int, number: int) -> None:
        self._write((fuse_protocol.render_header(unique, 0, number),))

    def _send(self, unique: int, content: Sequence[Buffer]) -> None:
        self._write((fuse_protocol.render_header(unique, sum(len(part) for part in content)), *content))

    def _write(self, parts: Sequence[Buffer]) -> None:
        try:
            os.writev(self._device, parts)
        except OSError as error:
            # The reader was interrupted, or the file system was unmounted: no reader waits.
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                raise
