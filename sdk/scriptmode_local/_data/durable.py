"""Writing of files that survive a power cut, or are written on a full disk.

A file system may keep a new file's content, its name and a removal in memory for some seconds, and lose any of them at
a power cut. A file is certain to be there after three steps in this order: sync its content, give it its name, and sync
the directory that holds the name. Only then may another file say so, or another copy be removed.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from scriptmode._core.machine import drafts

#: Errors of file systems that cannot sync a directory, such as some network file systems and those in user space.
_NO_DIRECTORY_SYNC = (errno.EINVAL, errno.ENOTSUP)
#: Several times what a state with the longest reason needs.
RESERVED_BYTES = 64 * 1024


def sync_file(path: Path) -> None:
    """Flush a file's content, or a directory's entries, to the disk; raise ``OSError``."""
    # With O_NONBLOCK, opening a FIFO of that name does not wait for a writer; fsync then refuses it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Flush a directory's entries to the disk, if its file system can; raise ``OSError``."""
    try:
        sync_file(path)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise


def replace_file(
    path: Path, content: bytes, *, durable: bool = True, directory: bool = False, drafts_in: Path | None = None
) -> None:
    """Write a file so that every reader sees either the complete old or the complete new content.

    Args:
        path: The file.
        content: Its new content.
        durable: Whether a power cut leaves the old or the new content, too, instead of an empty file.
        directory: Whether the new content is certain to survive a power cut once this returns.
        drafts_in: Another directory of the same file system for the draft.

    """
    descriptor, name = drafts.new_file(drafts_in or path.parent)
    draft = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(descriptor)
            draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if directory:
        sync_directory(path.parent)


class ChangedDirectories:
    """Directories whose entries changed and are to be synced: each once, regardless of the number of new files."""

    def __init__(self) -> None:
        self._changed: dict[Path, None] = {}

    def make_directory(self, path: Path, *, mode: int = 0o777) -> None:
        """Create a directory and its missing parents; ``mode`` is that of ``path`` alone, as with `Path.mkdir`."""
        missing = []
        parent = path
        while not parent.exists():
            missing.append(parent)
            parent = parent.parent
        path.mkdir(mode=mode, parents=True, exist_ok=True)
        for made in missing:
            self.add(made.parent)

    def replace(self, draft: Path, path: Path) -> None:
        """Rename ``draft`` to ``path``, after its content is durable."""
        sync_file(draft)
        draft.replace(path)
        self.add(path.parent)

    def add(self, directory: Path) -> None:
        """Remember that something was created in a directory."""
        self._changed[directory] = None

    def sync(self) -> None:
        """Flush all changed directories to the disk; raise ``OSError``."""
        while self._changed:
            sync_directory(next(iter(self._changed)))
            self._changed.pop(next(iter(self._changed)))


class Reserve:
    """A file that reserves space for another file of at most `RESERVED_BYTES` in the same directory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def allocate(self) -> None:
        """Allocate the space; raise ``OSError``."""
        # Random bytes, because a file system that compresses would reserve nothing for zeros.
        self._path.write_bytes(os.urandom(RESERVED_BYTES))

    def write(self, target: Path, content: bytes) -> None:
        """Write ``content`` durably into the reserved space, which no other file can take, and rename it to ``target``.

        Raises ``OSError``, `FileNotFoundError` if nothing was reserved.
        """
        try:
            with self._path.open("r+b") as file:
                file.write(content)
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
        except FileNotFoundError:
            raise
        except OSError:
            # For file systems that never write in place. Another file could take the freed space, but rarely does.
            self.release()
            replace_file(target, content)
        else:
            self._path.replace(target)
        sync_directory(target.parent)

    def release(self) -> None:
        """Free the space."""
        self._path.unlink(missing_ok=True)
