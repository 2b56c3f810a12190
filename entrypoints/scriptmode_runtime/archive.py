"""Unpack a source archive so that nothing lands outside its folder, whoever made the archive."""

from __future__ import annotations

import os
import shutil
import tarfile
import zlib

from scriptmode_runtime.errors import UserCodeError


def place(source: str, folder: str, *, title: str = "") -> None:
    """Put the archive or folder ``source`` into ``folder``, over what is there; raises `UserCodeError`.

    ``title`` is what errors call it: the source and its path, if not given.
    """
    title = title or f"the source {source}"
    try:
        os.makedirs(folder, exist_ok=True)
        if os.path.isdir(source):
            if os.path.realpath(source) != os.path.realpath(folder):
                shutil.copytree(source, folder, dirs_exist_ok=True, ignore_dangling_symlinks=True)
        else:
            _unpack(source, os.path.realpath(folder), title)
    except (tarfile.TarError, zlib.error, EOFError) as error:
        raise UserCodeError(f"{title} is no whole tar archive: {error}; store it again") from error
    except (OSError, ValueError, shutil.Error) as error:
        # ValueError: a name that no file of this system can have.
        raise UserCodeError(f"{title} cannot be unpacked into {folder}: {error}") from error


def _unpack(source: str, folder: str, title: str) -> None:
    links = []
    with tarfile.open(source) as archive:
        for member in archive:
            path = _inside(folder, member.name, title)
            if member.isdir():
                os.makedirs(path, exist_ok=True)
            elif member.isreg():
                _write(archive, member, path)
            elif member.issym():
                _inside(folder, os.path.join(os.path.dirname(member.name), member.linkname), title)
                _clear(path)
                os.symlink(member.linkname, path)
                _check_link(folder, member.name, path, title)
                links.append((member.name, path))
            elif member.islnk():
                target = _inside(folder, member.linkname, title)
                _clear(path)
                # Windows cannot be told to follow no link, and follows none.
                os.link(target, path, follow_symlinks=os.link not in os.supports_follow_symlinks)
                _check_link(folder, member.name, path, title)
                links.append((member.name, path))
            else:
                raise UserCodeError(f"{title} holds {member.name!r}, which is no file, folder or link")
    for name, path in links:
        # What came later may have turned them.
        _check_link(folder, name, path, title)


def _inside(folder: str, name: str, title: str) -> str:
    """Give the path of ``name`` in ``folder``; refuse one that leaves it, by itself or through links already there."""
    path = os.path.normpath(os.path.join(folder, name))
    parent = os.path.realpath(os.path.dirname(path)) if path != folder else folder
    if os.path.isabs(name) or any(os.path.commonpath([folder, place]) != folder for place in (path, parent)):
        raise UserCodeError(f"{title} holds {name!r}, which leads out of its folder")
    return path


def _check_link(folder: str, name: str, path: str, title: str) -> None:
    """Refuse, and remove, a symbolic link that leads out of ``folder``, through others that are there already too."""
    if os.path.islink(path) and os.path.commonpath([folder, os.path.realpath(path)]) != folder:
        os.unlink(path)
        raise UserCodeError(f"{title} holds {name!r}, which leads out of its folder")


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    content = archive.extractfile(member)
    if content is None:  # pragma: no cover - only for members that are no files
        return
    _clear(path)
    # A new file, never through a link; neither setuid bits nor a foreign owner are taken over.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with content, os.fdopen(descriptor, "wb") as file:
        shutil.copyfileobj(content, file)
    os.chmod(path, member.mode & 0o777 | 0o600)


def _clear(path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
