"""The server of a read-only FUSE file system: it answers the kernel for whoever reads below the mount.

One thread reads the requests and answers at once what it can. What has to be fetched is answered by the thread that
fetched it, so that a slow object holds up nobody else.
"""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Callable, Protocol, Union

from scriptmode.data import fuse_protocol
from scriptmode.data.fuse_protocol import Name, Node, Operation, Request
from scriptmode.errors import DataError, ScriptmodeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scriptmode.data.object_store import Buffer

#: What a reader gets: consecutive bytes in as many buffers as they lie in.
Content = Union["Sequence[Buffer]", BaseException]


class Opened(Protocol):
    """A file that somebody opened. The server calls it from one thread."""

    def read(self, start: int, size: int, answer: Callable[[Content], None]) -> None:
        """Have ``answer`` called once, on any thread, with the bytes (fewer only at the end) or what went wrong."""

    def close(self) -> None:
        """Give back what it holds; answers may still be on their way."""


class Tree(Protocol):
    """What a mount shows. The server calls it from one thread; ``OSError`` goes to the reader, `DataError` as EIO."""

    #: Seconds that the kernel may go on believing what it was told; a tree that never changes says many.
    seconds: float

    def lookup(self, folder: int, name: bytes) -> Node | None:
        """Give what has that name in a folder; each counts until `forget`."""

    def node(self, number: int) -> Node:
        """Give what was looked up."""

    def names(self, folder: int) -> Sequence[Name]:
        """Give what is in a folder, in the order it is listed."""

    def link(self, number: int) -> bytes:
        """Give where a symbolic link leads."""

    def open(self, number: int) -> Opened:
        """Open a file."""

    def forget(self, number: int, count: int) -> None:
        """Take back so many look-ups."""

    def count(self) -> int:
        """Give how many files there are, as far as that is known."""


class Server:
    """Serves ``tree`` over a descriptor of /dev/fuse; ``report`` is told once of each thing that cannot be read."""

    def __init__(self, device: int, tree: Tree, report: Callable[[str], None]) -> None:
        self._device = device
        self._tree = tree
        self._report = report
        self._reported: set[str] = set()
        self._files: dict[int, Opened] = {}
        self._folders: dict[int, Sequence[Name]] = {}
        self._handles = 0
        #: Requests that are being fetched for, and the threads that asked.
        self._waiting: dict[int, int] = {}
        self._lock = Lock()
        self._answers: dict[int, Callable[[Request], bytes | None]] = {
            Operation.INIT: self._init,
            Operation.LOOKUP: self._lookup,
            Operation.GETATTR: lambda asked: fuse_protocol.attributes(tree.node(asked.number), tree.seconds),
            Operation.READLINK: lambda asked: tree.link(asked.number),
            Operation.OPEN: self._open,
            Operation.READ: self._read,
            Operation.RELEASE: self._release,
            Operation.OPENDIR: self._open_folder,
            Operation.READDIR: self._list,
            Operation.READDIRPLUS: self._list,
            Operation.RELEASEDIR: self._release_folder,
            Operation.STATFS: lambda _: fuse_protocol.statfs(tree.count()),
            Operation.FORGET: self._forget,
            Operation.BATCH_FORGET: self._forget,
            Operation.INTERRUPT: self._interrupt,
            Operation.DESTROY: lambda _: b"",
        }

    def serve(self) -> None:
        """Answer until the mount is taken away."""
        while True:
            try:
                asked = fuse_protocol.request(os.read(self._device, fuse_protocol.REQUEST_BYTES))
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return
                # A request can be taken back between the wake-up and the read.
                if error.errno not in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                    raise
                continue
            self._answer(asked)

    def _answer(self, asked: Request) -> None:
        handler = self._answers.get(asked.operation)
        if handler is None:
            self._refuse(asked.unique, errno.EROFS if asked.operation in fuse_protocol.WRITING else errno.ENOSYS)
            return
        try:
            content = handler(asked)
        except (DataError, OSError) as error:
            self._refuse(asked.unique, self._number(error))
        else:
            if content is not None:
                self._send(asked.unique, (content,))

    def _init(self, asked: Request) -> bytes:
        content = fuse_protocol.init(asked.body)
        if content is None:
            raise OSError(errno.EPROTO, "this kernel's FUSE is older than Linux 3.15's")
        return content

    def _lookup(self, asked: Request) -> bytes:
        node = self._tree.lookup(asked.number, fuse_protocol.name(asked.body))
        return fuse_protocol.entry(node, self._tree.seconds) if node else fuse_protocol.no_entry(self._tree.seconds)

    def _open(self, asked: Request) -> bytes:
        opened = self._tree.open(asked.number)
        self._handles += 1
        self._files[self._handles] = opened
        return fuse_protocol.opened(self._handles, keep=True)

    def _release(self, asked: Request) -> bytes:
        self._files.pop(fuse_protocol.number(asked.body)).close()
        return b""

    def _read(self, asked: Request) -> None:
        wanted = fuse_protocol.read(asked.body)
        with self._lock:
            self._waiting[asked.unique] = asked.pid

        def answer(content: Content) -> None:
            with self._lock:
                if self._waiting.pop(asked.unique, None) is None:
                    return
            try:
                if isinstance(content, BaseException):
                    self._refuse(asked.unique, self._number(content))
                else:
                    self._send(asked.unique, content)
            except Exception as error:  # noqa: BLE001 - on a thread where nobody would see it, and a reader waits
                self._told(error)
                self._refuse(asked.unique, errno.EIO)

        self._files[wanted.handle].read(wanted.offset, wanted.size, answer)

    def _open_folder(self, asked: Request) -> bytes:
        # A listing stays as it was when it was opened, or names would be missed when the folder changes meanwhile.
        names = self._tree.names(asked.number)
        self._handles += 1
        self._folders[self._handles] = names
        return fuse_protocol.opened(self._handles, keep=self._tree.seconds > 1)

    def _release_folder(self, asked: Request) -> bytes:
        self._folders.pop(fuse_protocol.number(asked.body))
        return b""

    def _list(self, asked: Request) -> bytes:
        wanted = fuse_protocol.read(asked.body)
        names = self._folders[wanted.handle]
        with_nodes = asked.operation == Operation.READDIRPLUS
        answer = bytearray()
        for offset in range(wanted.offset, len(names)):
            record = fuse_protocol.folder_entry(names[offset], offset + 1)
            room = wanted.size - len(answer) - len(record)
            if room < (fuse_protocol.ENTRY_BYTES if with_nodes else 0):
                break
            if with_nodes:
                # What vanished since the listing is named all the same: whoever looks it up learns of it.
                # The kernel does not count the folder itself and the one above, and would never forget them.
                is_own = names[offset].name in (b".", b"..")
                node = None if is_own else self._tree.lookup(asked.number, names[offset].name)
                answer += fuse_protocol.entry(node, self._tree.seconds) if node else fuse_protocol.no_entry(0)
            answer += record
        return bytes(answer)

    def _forget(self, asked: Request) -> None:
        if asked.operation == Operation.FORGET:
            self._tree.forget(asked.number, fuse_protocol.number(asked.body))
            return
        for number, count in fuse_protocol.forgotten(asked.body):
            self._tree.forget(number, count)

    def _interrupt(self, asked: Request) -> None:
        """Let a killed reader go; one that merely got a signal goes on, for reads of files are not cut short."""
        unique = fuse_protocol.number(asked.body)
        with self._lock:
            pid = self._waiting.get(unique)
            if pid is None or not _killed(pid):
                return
            del self._waiting[unique]
        self._refuse(unique, errno.EINTR)

    def _number(self, error: BaseException) -> int:
        """Give the number that the reader gets; what it cannot say goes into the report."""
        if isinstance(error, OSError) and error.errno:
            return error.errno
        self._told(error)
        return errno.EIO

    def _told(self, error: BaseException) -> None:
        said = str(error) if isinstance(error, ScriptmodeError) else f"{type(error).__name__}: {error}"
        with self._lock:
            is_new = said not in self._reported
            self._reported.add(said)
        if is_new:
            self._report(said)

    def _refuse(self, unique: int, number: int) -> None:
        self._write((fuse_protocol.header(unique, 0, number),))

    def _send(self, unique: int, content: Sequence[Buffer]) -> None:
        self._write((fuse_protocol.header(unique, sum(len(part) for part in content)), *content))

    def _write(self, parts: Sequence[Buffer]) -> None:
        try:
            os.writev(self._device, parts)
        except OSError as error:
            # The reader was interrupted, or the mount was taken away: nobody waits any more.
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                raise


def _killed(pid: int) -> bool:
    """Say whether a SIGKILL is on its way to a thread."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines()
    except OSError:
        return True
    pending = [int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd:", "ShdPnd:"))]
    return any(mask >> (signal.SIGKILL - 1) & 1 for mask in pending)
