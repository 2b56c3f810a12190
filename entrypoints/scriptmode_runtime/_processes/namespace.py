"""A mount namespace in which ``/opt/ml`` is a directory of this process's choice.

Programs written for SageMaker name ``/opt/ml/...`` in their text. In the namespace that path is the host's directory;
everything else is the machine's. Nothing of the machine changes, and the mounts end with the last process in the
namespace.

A namespace takes several steps, each of which a machine may refuse. A child process tries all of them first, and ends:
this process begins only what the child has finished, so it never stays in half a namespace, such as one of users
without its ``uid_map``, where it would be user 65534.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

from scriptmode_runtime._processes import forks, system
from scriptmode_runtime.contract import DEFAULT_BASE_DIR

HOSTS_FILE = "/etc/hosts"
# unshare(2) and mount(2): flags of <linux/sched.h> and <linux/mount.h>.
_NEW_MOUNTS, _NEW_USERS = 0x00020000, 0x10000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _REMOUNT, _BIND, _RECURSIVE, _SLAVE = 1, 2, 4, 32, 4096, 16384, 1 << 19
#: EX_OSERR of <sysexits.h>, for what the machine refuses just after it allowed it.
_HALF_ENTERED = 71
_FIRST_STEP = "unshare"
_HOSTS_STEP = f"mounting {HOSTS_FILE}"
_TRIAL_STEP = "trying it in a child process"


class Refusal(NamedTuple):
    """The step of a namespace that the machine refuses, with its error."""

    step: str
    number: int
    reason: str

    def __str__(self) -> str:
        return f"{errno.errorcode.get(self.number, self.reason)} at {self.step}"


class NamespaceError(OSError):
    """Error for a namespace that this machine refuses; this process is where it was."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.number, str(refusal))
        self.refusal = refusal


def enter(base_dir: str, hosts_file: str = "") -> Refusal | None:
    """Move this process, which has no threads, into a new namespace; raise `NamespaceError` where that is refused.

    Mounts that exist below ``base_dir`` are part of it. A plain user keeps the user ID, because root's confuses
    programs that look at it, and gets no capability that outlives exec. Where a step fails that the child process was
    allowed, this process ends.

    Args:
        base_dir: The directory that is ``/opt/ml``.
        hosts_file: The file that is ``/etc/hosts``; "" for that of the machine.

    Returns:
        The refusal of ``/etc/hosts`` alone; ``/opt/ml`` is ``base_dir`` then, too.
    """
    refusal = find_refusal(base_dir, hosts_file)
    if refusal and refusal.step != _HOSTS_STEP:
        raise NamespaceError(refusal)
    try:
        _enter(base_dir, "" if refusal else hosts_file)
    except NamespaceError as error:
        if error.refusal.step != _FIRST_STEP:
            # Unlike in the trial another step failed, so that this process is in half a namespace.
            message = f"scriptmode: a namespace was refused after it was tried: {error.refusal}; start the job again\n"
            os.write(2, message.encode())
            os._exit(_HALF_ENTERED)
        raise
    return refusal


def find_refusal(base_dir: str, hosts_file: str = "") -> Refusal | None:
    """Return the first step of `enter` that this machine refuses, tried in a child process; None for none."""
    reading, writing = os.pipe()
    child = forks.fork()
    if child == 0:
        report: Refusal | None = Refusal(_TRIAL_STEP, 0, "no report")
        try:
            system.die_with_parent()
            _enter(base_dir, hosts_file)
            report = None
        except NamespaceError as error:
            report = error.refusal
        finally:
            os.write(writing, json.dumps(report).encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        text = file.read()
    os.waitpid(child, 0)
    # A filter of system calls may kill the process that makes one.
    report = json.loads(text) if text else Refusal(_TRIAL_STEP, 0, "the child process was killed")
    return Refusal(*report) if report else None


def is_base_dir(base_dir: str) -> bool:
    """Return whether ``/opt/ml`` is this directory, as it is in the directory's namespace and in a container."""
    try:
        return os.path.samefile(base_dir, DEFAULT_BASE_DIR)
    except OSError:
        return False


def _enter(base_dir: str, hosts_file: str) -> None:
    """Run every step, that of ``/etc/hosts`` at the end; raise `NamespaceError` for the first that is refused."""
    uid, gid = os.geteuid(), os.getegid()
    with _step(_FIRST_STEP):
        system.call("unshare", _NEW_MOUNTS | (_NEW_USERS if uid else 0))
    if uid:
        _write("setgroups", "deny")
        _write("uid_map", f"{uid} {uid} 1")
        _write("gid_map", f"{gid} {gid} 1")
    with _step("changing the propagation of mounts"):
        # Mounts of this namespace stay in it; unmounts of the machine arrive in it.
        _mount("", "/", _SLAVE | _RECURSIVE)
    if not os.path.isdir(DEFAULT_BASE_DIR):
        with _step(f"adding {DEFAULT_BASE_DIR}"):
            _add_directory(*os.path.split(DEFAULT_BASE_DIR))
    with _step(f"mounting {DEFAULT_BASE_DIR}"):
        _mount(base_dir, DEFAULT_BASE_DIR, _BIND | _RECURSIVE)
    if hosts_file:
        with _step(_HOSTS_STEP):
            _mount(hosts_file, HOSTS_FILE, _BIND)


@contextlib.contextmanager
def _step(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NamespaceError(Refusal(name, error.errno or 0, error.strerror or str(error))) from error


def _add_directory(parent: str, name: str) -> None:
    """Mount over a directory a read-only copy of it in which ``name`` is an empty directory."""
    old = os.open(parent, os.O_PATH | os.O_DIRECTORY)
    try:
        # A file of that name, or a link that leads nowhere, is not in the copy.
        entries = [entry for entry in os.scandir(f"/proc/self/fd/{old}") if entry.name != name]
        _mount("tmpfs", parent, _NO_SUID | _NO_DEVICES, "tmpfs", "mode=755,size=1m")
        for entry in entries:
            _copy_entry(entry, f"{parent}/{entry.name}")
        os.mkdir(f"{parent}/{name}")
        # A directory that a program creates here would be lost silently.
        _mount("", parent, _REMOUNT | _BIND | _READ_ONLY | _NO_SUID | _NO_DEVICES)
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
    system.call("mount", os.fsencode(source), os.fsencode(target), kind.encode(), flags, options.encode())


def _write(name: str, text: str) -> None:
    with _step(f"writing {name}"), open(f"/proc/self/{name}", "w", encoding="ascii") as file:
        file.write(text)


if __name__ == "__main__":
    # For callers with threads, which must not fork: the refusal, or null.
    sys.stdout.write(json.dumps(find_refusal(os.path.dirname(os.path.abspath(__file__)))))
