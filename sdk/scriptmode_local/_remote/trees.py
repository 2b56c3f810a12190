"""Trees of files on their way through frames: `TreeSender` sends what has changed, `TreeReceiver` writes it."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Callable

from scriptmode_local._data.replaced_files import ReplacedFiles
from scriptmode_local._remote.frames import CHUNK, Frame
from scriptmode_runtime._files import beneath, directory_tree

if TYPE_CHECKING:
    #: Sends a frame: its kind, its bytes, its other fields.
    Send = Callable[..., None]

#: The kinds of frames that a `TreeReceiver` writes.
KINDS = ("file", "directory", "link", "remove", "append")
#: A file whose last change is younger may be half written.
_REST_NANOSECONDS = 1_000_000_000


class TreeSender:
    """Sender of the files below a directory, each once until it changes, by their paths in it."""

    def __init__(self, folder: Path, send: Send) -> None:
        self._folder = folder
        self._send = send
        self._sent: dict[str, tuple[Any, ...]] = {}
        #: By root, files that may be replaced before they rest.
        self._replaced: dict[str, ReplacedFiles] = {}
        #: The bytes of each growing file that were sent.
        self._offsets: dict[str, int] = {}

    def send_tree(self, root: str, *, at_rest: bool = False) -> None:
        """Send what changed below the path ``root``, and what was removed; with ``at_rest`` no file just written."""
        paths, replaced = set(), self._replaced.setdefault(root, ReplacedFiles()) if at_rest else None
        with suppress(FileNotFoundError, NotADirectoryError), beneath.Directory(self._folder / root) as directory:
            for entry in directory_tree.walk(directory, failed=lambda _path, _error: None):
                path = f"{root}/{entry.path}"
                paths.add(path)
                self._send_entry(path, entry, replaced)
        if replaced:
            replaced.keep(paths)
        for path in [path for path in self._sent if path.startswith(f"{root}/") and path not in paths]:
            del self._sent[path]
            self._send("remove", path=path)

    def _send_entry(self, path: str, entry: directory_tree.Entry, replaced: ReplacedFiles | None) -> None:
        status = entry.status
        if entry.is_directory:
            self._once(path, ("directory",), lambda: self._send("directory", path=path))
        elif stat.S_ISLNK(status.st_mode):
            with suppress(OSError):
                target = os.readlink(entry.at.name, dir_fd=entry.at.dir_fd)
                self._once(path, ("link", target), lambda: self._send("link", path=path, target=target))
        elif stat.S_ISREG(status.st_mode):
            self._send_changed_file(path, entry, replaced)

    def _send_changed_file(self, path: str, entry: directory_tree.Entry, replaced: ReplacedFiles | None) -> None:
        def open_file() -> BinaryIO:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.fdopen(os.open(entry.at.name, flags, dir_fd=entry.at.dir_fd), "rb")

        file, status = None, entry.status
        if replaced is not None:
            file = replaced.look(path, status.st_ino, open_file)
            if file:
                status = os.fstat(file.fileno())
            elif time.time_ns() - status.st_mtime_ns < _REST_NANOSECONDS:
                return
        signature = (status.st_size, status.st_mtime_ns, status.st_ino)
        with file or nullcontext():
            if self._sent.get(path) != signature:
                with suppress(OSError), file or open_file() as opened:
                    self.send_file(path, opened)
                    self._sent[path] = signature

    def _once(self, path: str, signature: tuple[Any, ...], send: Callable[[], None]) -> None:
        if self._sent.get(path) != signature:
            send()
            self._sent[path] = signature

    def send_file(self, path: str, file: BinaryIO) -> None:
        """Send an open file as the file ``path``, as large as it is now."""
        status = os.fstat(file.fileno())
        left = status.st_size
        fields = {"path": path, "mode": stat.S_IMODE(status.st_mode), "mtime": status.st_mtime_ns}
        while True:
            content = file.read(min(CHUNK, left))
            left -= len(content)
            is_last = not left or not content
            self._send("file", content, last=is_last, **fields)
            if is_last:
                return

    def know(self, path: str) -> None:
        """Count a file that the other end has sent as sent, until it changes here."""
        with suppress(OSError):
            status = (self._folder / path).lstat()
            self._sent[path] = (status.st_size, status.st_mtime_ns, status.st_ino)

    def send_growth(self, path: str) -> bytes:
        """Send, and return, what was appended to a file since the last call."""
        sent = bytearray()
        with suppress(OSError), (self._folder / path).open("rb") as file:
            file.seek(self._offsets.get(path, 0))
            while content := file.read(CHUNK):
                self._send("append", content, path=path)
                self._offsets[path] = self._offsets.get(path, 0) + len(content)
                sent += content
        return bytes(sent)


class TreeReceiver:
    """Writer of received files beneath a directory.

    Args:
        folder: The directory.
        drafts: A directory of the same file system for files that are not complete; it is created.
        roots: Paths beneath which files may be received.

    """

    def __init__(self, folder: Path, drafts: Path, roots: Sequence[str]) -> None:
        self._directory = beneath.Directory(folder)
        self._drafts = drafts
        self._roots = roots
        self._draft: BinaryIO | None = None

    def receive(self, frame: Frame) -> None:
        """Write what a frame of one of `KINDS` says; raise ``OSError``, also for a path outside of the roots."""
        path = beneath.checked(str(frame.fields["path"]))
        if not any(path == root or path.startswith(f"{root}/") for root in self._roots):
            raise PermissionError(f"{path!r} is none of {', '.join(self._roots)}")
        if frame.kind == "remove":
            # It may be a directory, and what was above it may be a file or a link by now.
            with suppress(FileNotFoundError, NotADirectoryError):
                directory_tree.remove_beneath(self._directory, path)
        elif frame.kind == "file":
            self._receive_file(path, frame)
        elif frame.kind == "directory":
            self._create_directories(path)
        else:
            self._create_directories(path.rpartition("/")[0])
            with self._directory.at(path, links=False) as at:
                if frame.kind == "append":
                    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                    with os.fdopen(os.open(at.name, flags, 0o644, dir_fd=at.dir_fd), "ab") as file:
                        file.write(frame.content)
                else:
                    directory_tree.remove_beneath(self._directory, path)
                    os.symlink(frame.fields["target"], at.name, dir_fd=at.dir_fd)

    def _receive_file(self, path: str, frame: Frame) -> None:
        draft = self._drafts / "file"
        if self._draft is None:
            self._drafts.mkdir(parents=True, exist_ok=True)
            self._draft = draft.open("wb")
        self._draft.write(frame.content)
        if frame.fields["last"]:
            self._draft.close()
            self._draft = None
            draft.chmod(frame.fields["mode"] & 0o777)
            os.utime(draft, ns=(frame.fields["mtime"], frame.fields["mtime"]))
            self._create_directories(path.rpartition("/")[0])
            with self._directory.at(path, links=False) as at:
                try:
                    os.replace(draft, at.name, dst_dir_fd=at.dir_fd)
                except IsADirectoryError:
                    directory_tree.remove_beneath(self._directory, path)
                    os.replace(draft, at.name, dst_dir_fd=at.dir_fd)

    def _create_directories(self, path: str) -> None:
        """Create a directory with those above it, in the place of files and links."""
        parts = path.split("/") if path else []
        for position in range(1, len(parts) + 1):
            with self._directory.at("/".join(parts[:position]), links=False) as at:
                try:
                    os.mkdir(at.name, dir_fd=at.dir_fd)
                except FileExistsError:
                    if not stat.S_ISDIR(os.lstat(at.name, dir_fd=at.dir_fd).st_mode):
                        os.unlink(at.name, dir_fd=at.dir_fd)
                        os.mkdir(at.name, dir_fd=at.dir_fd)


def send_all(folder: Path, paths: Iterable[str], send: Send) -> None:
    """Send the files and directories at these paths of a directory, once."""
    sender = TreeSender(folder, send)
    for path in paths:
        if (folder / path).is_dir():
            sender.send_tree(path)
        else:
            with (folder / path).open("rb") as file:
                sender.send_file(path, file)
