"""A mount namespace in which ``/opt/ml`` is a directory of this process's choice.

Programs written for SageMaker name ``/opt/ml/...`` in their text. In the namespace that path is the host's directory;
everything else is the machine's. Nothing of the machine changes, and the mounts end with the last process in the
namespace.
"""

from __future__ import annotations

import os

from scriptmode_runtime.contract import DEFAULT_BASE_DIR
from scriptmode_runtime.processes import system

HOSTS_FILE = "/etc/hosts"
# unshare(2), umount(2) and mount(2): flags of <linux/sched.h> and <linux/mount.h>.
_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000
_DETACH = 2
_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND, _RECURSIVE, _SLAVE = 1, 2, 4, 32, 4096, 16384, 1 << 19


def enter(base_dir: str, hosts_file: str = "") -> None:
    """Move this process, which has no threads, into a new namespace; raise ``OSError`` where the machine forbids it.

    An error that names `HOSTS_FILE` concerns that file alone: ``/opt/ml`` is ``base_dir`` then.
    Mounts that exist below ``base_dir`` are part of it. A plain user keeps the user ID, because root's confuses
    programs that look at it, and gets no capability that outlives exec.

    Args:
        base_dir: The directory that is ``/opt/ml``.
        hosts_file: The file that is ``/etc/hosts``; "" for that of the machine.
    """
    uid, gid = os.geteuid(), os.getegid()
    system.call("unshare", _NEW_MOUNTS | (_NEW_USERS if uid else 0))
    if uid:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    # Mounts of this namespace stay in it; unmounts of the machine arrive in it.
    _mount("", "/", _SLAVE | _RECURSIVE)
    if not os.path.isdir(DEFAULT_BASE_DIR):
        _add_directory(*os.path.split(DEFAULT_BASE_DIR))
    _mount(base_dir, DEFAULT_BASE_DIR, _BIND | _RECURSIVE)
    if hosts_file:
        _mount(hosts_file, HOSTS_FILE, _BIND)


def is_base_dir(base_dir: str) -> bool:
    """Return whether ``/opt/ml`` is this directory, as it is in the directory's namespace and in a container."""
    try:
        return os.path.samefile(base_dir, DEFAULT_BASE_DIR)
    except OSError:
        return False


def _add_directory(parent: str, name: str) -> None:
    """Mount over a directory a read-only copy of it that has one more, empty directory; or leave it as it is."""
    old = os.open(parent, os.O_PATH | os.O_DIRECTORY)
    try:
        entries = list(os.scandir(f"/proc/self/fd/{old}"))
        _mount("tmpfs", parent, _NO_SUID | _NO_DEVICES, "tmpfs", "mode=755,size=1m")
        try:
            for entry in entries:
                _copy_entry(entry, f"{parent}/{entry.name}")
            os.mkdir(f"{parent}/{name}")
            # A directory that a program creates here would be lost silently.
            _mount("", parent, _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES)
        except OSError:
            # The program runs without a directory of its own then, but not without the rest.
            system.call("umount2", os.fsencode(parent), _DETACH)
            raise
    finally:
        os.close(old)


def _copy_entry(entry: os.DirEntry[str], copy: str) -> None:
    """Create what is the same as an entry of a directory: the same link, or a mount of it."""
    if entry.is_symlink():
        os.symlink(os.readlink(entry.path), copy)
        return
    if entry.is_dir():
        os.mkdir(copy)
    else:
        os.close(os.open(copy, os.O_CREAT | os.O_WRONLY))
    _mount(entry.path, copy, _BIND | _RECURSIVE)


def _mount(source: str, target: str, flags: int, kind: str = "", options: str = "") -> None:
    try:
        system.call("mount", os.fsencode(source), os.fsencode(target), kind.encode(), flags, options.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from None


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
