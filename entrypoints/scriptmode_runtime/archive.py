"""Unpack a source archive so that nothing lands outside its folder and the disk is not filled, whoever made it."""

from __future__ import annotations

import errno
import os
import shutil
import tarfile
import zlib
from typing import TYPE_CHECKING, NamedTuple

from scriptmode_runtime import contract
from scriptmode_runtime.errors import ConfigurationError, UserCodeError
from scriptmode_runtime.tar_members import Content, members, opened, shortened, shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

_GB = 10**9
#: More files than any program has; few file systems like more.
_MOST_MEMBERS = 1_000_000
#: What a source leaves free for what the job writes: a twentieth of the disk, at most this much.
_LARGEST_RESERVE = 1_000_000_000
#: Folders above a file. What walks a folder tree does it recursively, and none is so deep.
_DEEPEST = 200


class Limits(NamedTuple):
    """What an archive may take beside what the disk has; 0 is no limit."""

    #: Bytes it unpacks to.
    size: int = 0
    #: Files, folders and links.
    members: int = 0
    #: The part of the disk that stays free.
    reserve: float = 0.0


def source_limits(environ: Mapping[str, str]) -> Limits:
    """Give what a job's source may take; raises `ConfigurationError` for a limit that is no number."""
    text = environ.get(contract.SOURCE_LIMIT_VARIABLE) or str(contract.DEFAULT_SOURCE_LIMIT_GB)
    try:
        size = int(float(text) * _GB)
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise ConfigurationError(f"{contract.SOURCE_LIMIT_VARIABLE}={text!r} is no number of GB above 0")
    return Limits(size, _MOST_MEMBERS, 0.05)


def place(source: str, folder: str, *, title: str = "", limits: Limits | None = None) -> None:
    """Put the archive or folder ``source`` into ``folder``, over what is there; raises `UserCodeError`.

    Of an archive that is refused nothing is left. ``title`` is what errors call it: the source and its path, if not
    given. Without ``limits`` the disk is the only one.
    """
    title = title or f"the source {source}"
    try:
        os.makedirs(folder, exist_ok=True)
        if os.path.isdir(source):
            _copy(source, folder, title)
        else:
            with _Unpacking(os.path.realpath(folder), title, limits or Limits()) as unpacking:
                unpacking.unpack(source)
    except (tarfile.TarError, zlib.error, EOFError, RecursionError, OverflowError) as error:
        raise UserCodeError(f"{title} is no whole tar archive: {error}; store it again") from error
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is None and not isinstance(error, shutil.Error):
            raise UserCodeError(
                f"{title} is no whole tar archive: {error}; store it again"
            ) from error  # its compression
        # ValueError: a name that no file of this system can have.
        raise UserCodeError(f"{title} cannot be unpacked into {folder}: {shortened(str(error))}") from error


def _copy(source: str, folder: str, title: str) -> None:
    real, target = os.path.realpath(source), os.path.realpath(folder)
    if real == target:
        return
    if os.path.commonpath([real, target]) == real:
        raise UserCodeError(f"{title} holds {folder}, where it is to be copied; name a folder beside it")
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore_dangling_symlinks=True)


class _Unpacking:
    """One archive on its way into a folder; what it brought is taken away again unless all of it came."""

    def __init__(self, folder: str, title: str, limits: Limits) -> None:
        self._folder = folder
        self._title = title
        self._room = _Room(folder, title, limits)
        #: Paths that were not there before, without what is below another of them.
        self._new: list[str] = []
        self._new_folders: set[str] = set()
        self._links: list[tuple[str, str]] = []

    def __enter__(self) -> _Unpacking:  # noqa: PYI034 - Self is not in Python 3.9's typing
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind:
            for path in reversed(self._new):
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path, ignore_errors=True)
                elif os.path.lexists(path):
                    os.unlink(path)

    def unpack(self, source: str) -> None:
        """Unpack all of it."""
        with opened(source, self._title) as file:
            content = Content(file)
            with tarfile.open(fileobj=content, mode="r:") as archive:  # type: ignore[call-overload]
                for member in members(archive, content):
                    self._room.take(member)
                    self._add(archive, member)
        for name, path in self._links:
            # What came later may have turned them.
            self._check_link(name, path)

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = self._inside(member.name)
        if member.isdir():
            self._make(path)
        elif member.isreg():
            self._clear(path)
            _write(archive, member, path)
        elif member.issym():
            self._inside(os.path.join(os.path.dirname(member.name), member.linkname))
            self._clear(path)
            os.symlink(member.linkname, path)
            self._add_link(member.name, path)
        elif member.islnk():
            target = self._inside(member.linkname)
            self._clear(path)
            # Windows cannot be told to follow no link, and follows none.
            os.link(target, path, follow_symlinks=os.link not in os.supports_follow_symlinks)
            self._add_link(member.name, path)
        else:
            raise UserCodeError(f"{self._title} holds {shown(member.name)}, which is no file, folder or link")

    def _inside(self, name: str) -> str:
        """Give the path of ``name``; refuse one that leaves the folder, by itself or through links already there."""
        folder = self._folder
        if name.count("/") > _DEEPEST:
            raise UserCodeError(f"{self._title} holds {shown(name)}, more than {_DEEPEST} folders deep")
        path = os.path.normpath(os.path.join(folder, name))
        parent = os.path.realpath(os.path.dirname(path)) if path != folder else folder
        if os.path.isabs(name) or any(os.path.commonpath([folder, place]) != folder for place in (path, parent)):
            raise UserCodeError(f"{self._title} holds {shown(name)}, which leads out of its folder")
        return path

    def _add_link(self, name: str, path: str) -> None:
        self._check_link(name, path)
        self._links.append((name, path))

    def _check_link(self, name: str, path: str) -> None:
        """Refuse, and remove, a symbolic link that leads out, through others that are there already too."""
        if os.path.islink(path) and self._leads_out(path):
            os.unlink(path)
            raise UserCodeError(f"{self._title} holds {shown(name)}, which leads out of its folder")

    def _leads_out(self, path: str) -> bool:
        try:
            os.stat(path)
        except OSError as error:
            if error.errno == errno.ELOOP:  # a circle, or a chain too long for anybody to follow, and for realpath too
                return False
        return os.path.commonpath([self._folder, os.path.realpath(path)]) != self._folder

    def _clear(self, path: str) -> None:
        """Make way for a new file or link."""
        self._make(os.path.dirname(path))
        if os.path.lexists(path):
            os.unlink(path)
        elif not self._below_new(path):
            self._new.append(path)

    def _make(self, path: str) -> None:
        """Make a folder and those above it."""
        missing = ""
        above = path
        while not os.path.lexists(above):
            missing, above = above, os.path.dirname(above)
        if missing and not self._below_new(missing):
            self._new.append(missing)
            self._new_folders.add(missing)
        os.makedirs(path, exist_ok=True)

    def _below_new(self, path: str) -> bool:
        while len(path) > len(self._folder):
            path = os.path.dirname(path)
            if path in self._new_folders:
                return True
        return False


class _Room:
    """What may still be unpacked."""

    def __init__(self, folder: str, title: str, limits: Limits) -> None:
        self._folder = folder
        self._title = title
        self._limits = limits
        self._members = 0
        self._size = 0
        #: Measured, less what was written since.
        self._free = 0.0

    def take(self, member: tarfile.TarInfo) -> None:
        """Count a member; refuse it, before anything of it is written, where it is too much."""
        limits = self._limits
        size = member.size if member.isreg() else 0
        self._members += 1
        self._size += size
        if limits.members and self._members > limits.members:
            raise UserCodeError(
                f"{self._title} holds more than {limits.members:,} files; put them into fewer ones, or into a channel"
            )
        if limits.size and self._size > limits.size:
            raise UserCodeError(
                f"{self._title} unpacks to more than {_amount(limits.size)}: to {_amount(self._size)} with "
                f"{shown(member.name)}; put data into a channel, or raise {contract.SOURCE_LIMIT_VARIABLE}"
            )
        if size > self._free:
            self._free = _free(self._folder, limits.reserve)
        if size > self._free:
            raise UserCodeError(
                f"{self._title} unpacks to at least {_amount(self._size)}: {shown(member.name)} takes "
                f"{_amount(size)}, and {self._folder} has room for {_amount(max(0, self._free))}; make room there, "
                "or take a larger volume"
            )
        self._free -= size


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    content = archive.extractfile(member)
    if content is None:  # pragma: no cover - only for members that are no files
        return
    # A new file, never through a link; neither setuid bits nor a foreign owner are taken over.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with content, os.fdopen(descriptor, "wb") as file:
        shutil.copyfileobj(content, file)
    os.chmod(path, member.mode & 0o777 | 0o600)


def _free(folder: str, reserve: float) -> float:
    """Give the bytes that may be written, less the part of the disk that is to stay free."""
    disk = shutil.disk_usage(folder)
    if not disk.total:  # a file system that does not say
        return float("inf")
    return disk.free - min(disk.total * reserve, _LARGEST_RESERVE)


def _amount(size: float) -> str:
    for unit, name in ((_GB, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size:.0f} bytes"
