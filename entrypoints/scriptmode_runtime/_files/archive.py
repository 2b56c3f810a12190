"""Unpack an untrusted archive: nothing is written outside of its directory, and the disk is not filled."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from scriptmode_runtime import contract
from scriptmode_runtime._files import beneath
from scriptmode_runtime._files.tar_members import members, opened, shortened, shown
from scriptmode_runtime._values import settings
from scriptmode_runtime._values.errors import UserCodeError

_GB = 10**9
#: More files than any program or model has.
MOST_MEMBERS = 1_000_000
#: Characters of the names and targets of all links, which are kept in memory until the files are written.
_MOST_LINK_TEXT = 100_000_000
#: Bytes that the smallest file takes on most file systems.
_BLOCK = 4096
#: The largest part of the disk that stays free for the job's own files, in bytes; a twentieth of smaller disks.
_LARGEST_RESERVE = 1_000_000_000
#: Most directories above a file: programs walk directory trees recursively, and no real tree is that deep.
DEEPEST = 200


class Limits(NamedTuple):
    """Limits of an archive in addition to the free disk space; 0 is unlimited."""

    #: Bytes that it unpacks to.
    size: int = 0
    #: Files, directories and links.
    members: int = 0
    #: The part of the disk that stays free.
    reserve: float = 0.0
    #: The next step for an archive with too many members.
    advice: str = "put them into fewer ones, or into a channel"
    #: The next step for a member that cannot be unpacked.
    remedy: str = "pack it again without it"


#: Limits of a job's model: any size for which the disk has space.
MODEL_LIMITS = Limits(
    members=MOST_MEMBERS,
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
    return Limits(int(settings.read(environ).source_gb * _GB), MOST_MEMBERS, 0.05)


def unpack(source: str, folder: str, *, title: str = "", limits: Limits | None = None) -> None:
    """Unpack the archive, or copy the directory, ``source`` into ``folder``; raises `UserCodeError`.

    Existing files are replaced, existing directories are kept and filled. Nothing of a refused archive comes into the
    directory; only where the file system fails while the files are moved there, some of them are. ``title`` names the
    archive in errors: the source and its path by default. Without ``limits`` only the disk limits it.
    """
    title = title or f"the source {source}"
    try:
        os.makedirs(folder, exist_ok=True)
        if os.path.isdir(source):
            _copy(source, folder, title)
        else:
            import tempfile

            # Private, and in the same file system, so that what it contains can be renamed.
            with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder) as top:
                _Unpacking(top, title, folder, limits or Limits()).unpack(source)
    except (OSError, ValueError, tarfile.TarError, zlib.error, EOFError, RecursionError, OverflowError) as error:
        # An OSError without a number is of its compression; a ValueError is of a name that no file can have.
        if not isinstance(error, (ValueError, shutil.Error)) and getattr(error, "errno", None) is None:
            raise UserCodeError(f"{title} is not a complete tar archive: {error}; pack it with tar -czf") from error
        raise UserCodeError(f"{title} cannot be unpacked into {folder}: {shortened(str(error))}") from error


def _copy(source: str, folder: str, title: str) -> None:
    if os.path.samefile(source, folder):
        return
    if _holds(source, folder):
        raise UserCodeError(f"{title} holds {folder}, to which it is copied; name a directory outside of it")
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore_dangling_symlinks=True)


def _holds(above: str, folder: str) -> bool:
    """Return whether ``folder`` is somewhere below ``above``."""
    while not os.path.samefile(folder, os.path.join(folder, os.pardir)):
        folder = os.path.join(folder, os.pardir)
        if os.path.samefile(folder, above):
            return True
    return False


class _Unpacking:
    """The unpacking of one archive into a new directory, from which everything is moved into the directory at the end.

    The directory contains no link until all files are written, so no member is written through a link. Links are
    created last, in real directories, and then followed one component at a time through what will be in the directory:
    the new content over the existing one. Existing links are not checked again. Python's ``tarfile.data_filter`` is
    not enough: it follows links by `os.path.realpath`, which gives up on paths longer than ``PATH_MAX`` before Python
    3.9.23, 3.10.18, 3.11.13, 3.12.11 and 3.13.4 (CVE-2025-4517).
    """

    def __init__(self, top: str, title: str, folder: str, limits: Limits) -> None:
        self._top = top
        self._folder = folder
        self._title = title
        self._remedy = limits.remedy
        self._budget = _Budget(folder, title, limits)
        #: The targets of symbolic links by their paths.
        self._links: dict[str, str] = {}

    def unpack(self, source: str) -> None:
        """Unpack all members, and move them into the directory once nothing is left to refuse."""
        with opened(source, self._title) as file, tarfile.open(fileobj=file, mode="r:") as archive:  # type: ignore[call-overload]
            for member in members(archive, file):
                self._budget.take(member)
                with self._naming(member.name, member.linkname if member.islnk() else ""):
                    self._add(archive, member)
        for name, target in self._links.items():
            if os.path.isdir(self._path(name)):
                raise UserCodeError(f"{self._title} holds {shown(name)}, a link with members below it; {self._remedy}")
            with self._naming(name):
                with suppress(FileNotFoundError):
                    os.unlink(self._path(name))
                os.symlink(target, self._path(name))
        moves = list(self._moves())
        for name, target in self._links.items():
            with self._naming(name):
                self._check_link(name, target)
        for name in moves:
            self._move(name)

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        name = self._inside(member.name, member)
        path = self._path(name)
        if member.isdir():
            self._links.pop(name, None)
            os.makedirs(path, exist_ok=True)
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        linked = self._inside(member.linkname, member) if member.islnk() else ""
        if member.issym() or linked in self._links:
            self._links[name] = member.linkname if member.issym() else self._links[linked]
            return
        if not member.isreg() and not member.islnk():
            raise UserCodeError(f"{self._title} holds {shown(member.name)}, which is not a file, directory or link")
        self._links.pop(name, None)
        with suppress(FileNotFoundError):
            os.unlink(path)
        if member.isreg():
            _write(archive, member, path)
        elif os.path.isdir(self._path(linked)):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        else:
            os.link(self._path(linked), path)

    def _path(self, name: str) -> str:
        return os.path.join(self._top, name)

    def _inside(self, name: str, member: tarfile.TarInfo) -> str:
        """Return ``name``, or a hard link's target, as a path in the directory; raise where it leads out."""
        if name.count("/") > DEEPEST:
            raise UserCodeError(f"{self._title} holds {shown(name)}, more than {DEEPEST} directories deep")
        if os.path.isabs(name):
            raise self._escape(member.name, member.linkname)
        try:
            return beneath.checked(os.path.normpath(name).replace(os.sep, "/"))
        except beneath.EscapeError as error:
            raise self._escape(member.name, member.linkname) from error

    def _escape(self, name: str, target: str) -> UserCodeError:
        to = f" (to {shown(target)})" if target else ""
        return UserCodeError(f"{self._title} holds {shown(name)}, which leads out of its directory{to}; {self._remedy}")

    @contextmanager
    def _naming(self, name: str, target: str = "") -> Iterator[None]:
        """Raise errors caused by a member's kind or position with its name; ``target`` is that of a hard link."""
        try:
            yield
        except OSError as error:
            if error.errno not in _OF_MEMBERS:
                raise
            kind = f" (a hard link to {shown(target)})" if target else ""
            reason = f"{shown(name)}{kind}, which cannot be unpacked: {error.strerror}"
            raise UserCodeError(f"{self._title} holds {reason}; {self._remedy}") from error

    def _moves(self, below: str = "") -> Iterator[str]:
        """Yield the paths to move, without those in another one; raise where a directory and a file have one path."""
        for entry in os.listdir(self._path(below)):
            name = os.path.join(below, entry)
            existing = os.path.join(self._folder, name)
            is_folder = _is_folder(self._path(name))
            if os.path.lexists(existing) and is_folder != _is_folder(existing):
                kinds = (
                    "a directory, but {} is a file or link" if is_folder else "a file or link, but {} is a directory"
                )
                raise UserCodeError(
                    f"{self._title} holds {shown(name)}, {kinds.format(shown(existing))}; remove or rename one of them"
                )
            if is_folder and os.path.lexists(existing):
                yield from self._moves(name)
            else:
                yield name

    def _move(self, name: str) -> None:
        existing = os.path.join(self._folder, name)
        try:
            os.replace(self._path(name), existing)
        except OSError as error:
            raise UserCodeError(
                f"{self._title} cannot be unpacked into {self._folder}: {shown(existing)} cannot be written: "
                f"{error.strerror}; some files may be replaced already: make the directory writable and unpack it again"
            ) from error

    def _check_link(self, name: str, target: str) -> None:
        """Raise for a symbolic link that will lead out of the directory, also through other links and missing paths."""
        try:
            above = name.split("/")[:-1]
            pending = beneath.components(target)[::-1]
            left = beneath.MOST_LINKS
            while pending:
                part = pending.pop()
                link = self._link("/".join((*above, part))) if part != ".." else None
                if link is not None and not left:
                    return  # The system does not follow it either.
                if link is not None:
                    left -= 1
                    pending += reversed(beneath.components(link))
                elif part != "..":
                    above.append(part)
                elif above:
                    above.pop()
                else:
                    raise self._escape(name, target)
        except beneath.EscapeError as error:
            raise self._escape(name, target) from error

    def _link(self, path: str) -> str | None:
        """Return the target of the link that will have this path in the directory; None for anything else."""
        for folder in (self._top, self._folder):
            there = os.path.join(folder, path)
            try:
                return os.readlink(there) if stat.S_ISLNK(os.lstat(there).st_mode) else None
            except FileNotFoundError:
                continue
            except NotADirectoryError:
                break
        return None


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


class _Budget:
    """The members and bytes that may still be unpacked."""

    def __init__(self, folder: str, title: str, limits: Limits) -> None:
        self._folder = folder
        self._title = title
        self._limits = limits
        self._members = 0
        self._link_text = 0
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
                f"{self._title} holds more than {limits.members:,} files, directories and links; {limits.advice}"
            )
        if member.issym() or member.islnk():
            self._link_text += len(member.name) + len(member.linkname)
        if self._link_text > _MOST_LINK_TEXT:
            names = _amount(_MOST_LINK_TEXT)
            raise UserCodeError(f"{self._title} holds links with {names} of names; pack it without them")
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


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    content = archive.extractfile(member)
    if content is None:  # pragma: no cover - only for members that are not files
        return
    with content, open(path, "xb") as file:
        shutil.copyfileobj(content, file)
    # Set-user-ID bits and the owner are not kept.
    os.chmod(path, member.mode & 0o777 | 0o600)


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
