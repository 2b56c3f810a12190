"""Unpack an untrusted archive: nothing is written outside of its folder, and the disk is not filled."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tarfile
import zlib
from typing import TYPE_CHECKING, NamedTuple

from scriptmode_runtime import contract
from scriptmode_runtime.errors import ConfigurationError, UserCodeError
from scriptmode_runtime.files import beneath
from scriptmode_runtime.files.tar_members import Content, members, opened, shortened, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from scriptmode_runtime.files.beneath import At

_GB = 10**9
#: More files than any program or model has.
_MOST_MEMBERS = 1_000_000
#: Bytes that the smallest file takes on most file systems.
_BLOCK = 4096
#: The largest part of the disk that stays free for the job's own files, in bytes; a twentieth of smaller disks.
_LARGEST_RESERVE = 1_000_000_000
#: Most folders above a file: programs walk folder trees recursively, and no real tree is that deep.
DEEPEST = 200


class Limits(NamedTuple):
    """Limits of an archive in addition to the free disk space; 0 is unlimited."""

    #: Bytes that it unpacks to.
    size: int = 0
    #: Files, folders and links.
    members: int = 0
    #: The part of the disk that stays free.
    reserve: float = 0.0
    #: The next step for an archive with too many members.
    advice: str = "put them into fewer ones, or into a channel"
    #: The next step for a member that cannot be unpacked.
    remedy: str = "pack it again without it"


#: Limits of a job's model: any size for which the disk has space.
MODEL_LIMITS = Limits(
    members=_MOST_MEMBERS,
    reserve=0.05,
    advice="download the archive as it is stored (--no-extract) and unpack it there",
    remedy="pack it again without it, or download the archive as it is stored (--no-extract)",
)
#: Errors caused by the order and the kinds of an archive's members, not by the disk or by permissions.
_OF_MEMBERS = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ELOOP, errno.ENAMETOOLONG}
)


def source_limits(environ: Mapping[str, str]) -> Limits:
    """Return the limits of a job's source; raises `ConfigurationError` for a limit that is not a number."""
    text = environ.get(contract.SOURCE_LIMIT_VARIABLE) or str(contract.DEFAULT_SOURCE_LIMIT_GB)
    try:
        size = int(float(text) * _GB)
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise ConfigurationError(f"{contract.SOURCE_LIMIT_VARIABLE}={text!r} is not a number of GB above 0")
    return Limits(size, _MOST_MEMBERS, 0.05)


def unpack(source: str, folder: str, *, title: str = "", limits: Limits | None = None) -> None:
    """Unpack the archive, or copy the folder, ``source`` into ``folder``; raises `UserCodeError`.

    Existing files are replaced. Everything of a refused archive is removed. ``title`` names it in errors: the source
    and its path by default. Without ``limits`` only the disk limits it.
    """
    title = title or f"the source {source}"
    try:
        os.makedirs(folder, exist_ok=True)
        if os.path.isdir(source):
            _copy(source, folder, title)
        else:
            with _Unpacking(folder, title, limits or Limits()) as unpacking:
                unpacking.unpack(source)
    except (tarfile.TarError, zlib.error, EOFError, RecursionError, OverflowError) as error:
        raise UserCodeError(f"{title} is not a complete tar archive: {error}; store it again") from error
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is None and not isinstance(error, shutil.Error):
            raise UserCodeError(
                f"{title} is not a complete tar archive: {error}; store it again"
            ) from error  # its compression
        # ValueError: a name that no file of this system can have.
        raise UserCodeError(f"{title} cannot be unpacked into {folder}: {shortened(str(error))}") from error


def _copy(source: str, folder: str, title: str) -> None:
    if os.path.samefile(source, folder):
        return
    if _holds(source, folder):
        raise UserCodeError(f"{title} holds {folder}, to which it is copied; name a folder outside of it")
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore_dangling_symlinks=True)


def _holds(above: str, folder: str) -> bool:
    """Return whether ``folder`` is somewhere below ``above``."""
    while not os.path.samefile(folder, os.path.join(folder, os.pardir)):
        folder = os.path.join(folder, os.pardir)
        if os.path.samefile(folder, above):
            return True
    return False


class _Unpacking:
    """The unpacking of one archive into a folder; its files are removed again unless all of them were unpacked."""

    def __init__(self, folder: str, title: str, limits: Limits) -> None:
        self._folder = beneath.Directory(folder)
        self._title = title
        self._remedy = limits.remedy
        self._budget = _Budget(folder, title, limits)
        #: New paths, without those below another new path. None of them contains a link.
        self._new: list[str] = []
        self._new_folders: set[str] = set()
        self._links: list[str] = []

    def __enter__(self) -> _Unpacking:  # noqa: PYI034 - Self is not in Python 3.9's typing
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for path in reversed(self._new) if kind else ():
            self._folder.remove_tree(path, failed=lambda *_: None)
        self._folder.close()

    def unpack(self, source: str) -> None:
        """Unpack all members."""
        with opened(source, self._title) as file:
            content = Content(file)
            with tarfile.open(fileobj=content, mode="r:") as archive:  # type: ignore[call-overload]
                for member in members(archive, content):
                    self._budget.take(member)
                    try:
                        self._add(archive, member)
                    except beneath.EscapeError as error:
                        raise self._escape(member.name, member.linkname) from error
                    except OSError as error:
                        if error.errno not in _OF_MEMBERS:
                            raise
                        raise self._impossible(member, error) from error
        for name in self._links:
            # Later members may have changed where they lead.
            self._check_link(name)

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = self._inside(member.name, member)
        if member.isdir():
            self._make(name)
        elif member.isreg():
            with self._cleared(name) as at:
                _write(archive, member, at)
        elif member.issym():
            self._inside(os.path.join(os.path.dirname(member.name), member.linkname), member)
            with self._cleared(name) as at:
                os.symlink(member.linkname, at.name, dir_fd=at.dir_fd)
            self._add_link(name)
        elif member.islnk():
            with self._folder.at(self._inside(member.linkname, member)) as target, self._cleared(name) as at:
                _link(target, at)
            self._add_link(name)
        else:
            raise UserCodeError(f"{self._title} holds {shown(member.name)}, which is not a file, folder or link")

    def _inside(self, name: str, member: tarfile.TarInfo) -> str:
        """Return ``name``, or a link's target, as a path in the folder; raise where its text alone leads out."""
        if name.count("/") > DEEPEST:
            raise UserCodeError(f"{self._title} holds {shown(name)}, more than {DEEPEST} folders deep")
        if os.path.isabs(name):
            raise self._escape(member.name, member.linkname)
        try:
            return beneath.checked(os.path.normpath(name).replace(os.sep, "/"))
        except beneath.EscapeError as error:
            raise self._escape(member.name, member.linkname) from error

    def _escape(self, name: str, target: str) -> UserCodeError:
        to = f" (to {shown(target)})" if target else ""
        return UserCodeError(f"{self._title} holds {shown(name)}, which leads out of its folder{to}; {self._remedy}")

    def _impossible(self, member: tarfile.TarInfo, error: OSError) -> UserCodeError:
        kind = f" (a hard link to {shown(member.linkname)})" if member.islnk() else ""
        reason = f"{shown(member.name)}{kind}, which cannot be unpacked: {error.strerror}"
        return UserCodeError(f"{self._title} holds {reason}; {self._remedy}")

    def _add_link(self, name: str) -> None:
        self._check_link(name)
        self._links.append(name)

    def _check_link(self, name: str) -> None:
        """Remove a symbolic link that leads out of the folder, also through existing links, and raise."""
        try:
            self._folder.stat(name)
        except beneath.EscapeError as error:
            with self._folder.at(name) as at:
                target = os.readlink(at.name, dir_fd=at.dir_fd)
                os.unlink(at.name, dir_fd=at.dir_fd)
            raise self._escape(name, target) from error
        except OSError as error:
            # It cannot be followed: its target is missing, or behind too many links, or below a file.
            if error.errno not in (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EACCES):
                raise

    @contextlib.contextmanager
    def _cleared(self, name: str) -> Iterator[At]:
        """Yield the position of a new file or link; an existing one is removed."""
        self._make(os.path.dirname(name))
        with self._folder.at(name) as at:
            try:
                os.unlink(at.name, dir_fd=at.dir_fd)
            except FileNotFoundError:
                if not self._below_new(at.path):
                    self._new.append(at.path)
            yield at

    def _make(self, name: str) -> None:
        """Create a folder and its parents."""
        new = self._folder.make_directories(name)
        if new and not self._below_new(new):
            self._new.append(new)
            self._new_folders.add(new)

    def _below_new(self, path: str) -> bool:
        while path:
            path = os.path.dirname(path)
            if path in self._new_folders:
                return True
        return False


def _link(target: At, at: At) -> None:
    """Create a hard link, to a symbolic link itself if the target is one; Windows never follows it."""
    follow = os.link not in os.supports_follow_symlinks
    os.link(target.name, at.name, src_dir_fd=target.dir_fd, dst_dir_fd=at.dir_fd, follow_symlinks=follow)


class _Budget:
    """The members and bytes that may still be unpacked."""

    def __init__(self, folder: str, title: str, limits: Limits) -> None:
        self._folder = folder
        self._title = title
        self._limits = limits
        self._members = 0
        self._size = 0
        #: The free space at the last measurement, less the bytes written since.
        self._free = 0.0

    def take(self, member: tarfile.TarInfo) -> None:
        """Count a member; raise before it is written where it exceeds a limit."""
        limits = self._limits
        size = member.size if member.isreg() else 0
        self._members += 1
        self._size += size
        if limits.members and self._members > limits.members:
            raise UserCodeError(
                f"{self._title} holds more than {limits.members:,} files, folders and links; {limits.advice}"
            )
        if limits.size and self._size > limits.size:
            raise UserCodeError(
                f"{self._title} unpacks to more than {_amount(limits.size)}: to {_amount(self._size)} with "
                f"{shown(member.name)}; put data into a channel, or raise {contract.SOURCE_LIMIT_VARIABLE}"
            )
        blocks = -(-size // _BLOCK) * _BLOCK
        if blocks > self._free:
            self._free = _free(self._folder, limits.reserve)
        if blocks > self._free:
            raise UserCodeError(
                f"{self._title} unpacks to at least {_amount(self._size)}: {shown(member.name)} takes "
                f"{_amount(size)}, and {self._folder} has space for {_amount(max(0, self._free))}; free space there, "
                "or use a larger volume"
            )
        self._free -= blocks


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, at: At) -> None:
    content = archive.extractfile(member)
    if content is None:  # pragma: no cover - only for members that are not files
        return
    # A new file, never through a link; setuid bits and the owner are not kept.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(at.name, flags, 0o600, dir_fd=at.dir_fd)
    with content, os.fdopen(descriptor, "wb") as file:
        shutil.copyfileobj(content, file)
        mode = member.mode & 0o777 | 0o600
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, mode)
        else:
            os.chmod(at.name, mode)


def _free(folder: str, reserve: float) -> float:
    """Return the bytes that may be written, without the part of the disk that stays free."""
    disk = shutil.disk_usage(folder)
    if not disk.total:  # a file system that does not report it
        return float("inf")
    return disk.free - min(disk.total * reserve, _LARGEST_RESERVE)


def _amount(size: float) -> str:
    for unit, name in ((_GB, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:,.1f} {name}"
    return f"{size:.0f} bytes"
