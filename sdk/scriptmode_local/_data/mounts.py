"""Mount and unmount: FUSE file systems, as root or through the helper of Debian's fuse3, and directories read-only.

Only mounts of the type `KIND` and read-only ones are listed or unmounted. No function accesses files below a mount,
whose server may be dead or hang.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import struct
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from scriptmode._core.text.messages import Problem, problem_of
from scriptmode.errors import DataError
from scriptmode_runtime._files import beneath
from scriptmode_runtime._processes import system

DEVICE = "/dev/fuse"
#: The file system type in /proc/mounts.
KIND = "fuse.scriptmode"
SECONDS = 20.0
#: Names of the setuid program that mounts for other users than root.
HELPERS = ("fusermount3", "fusermount")
# mount(2) and umount(2), the same on every architecture.
_READ_ONLY, _NO_SUID, _NO_DEVICES = 1, 2, 4
_DETACH, _NO_FOLLOW = 2, 8
# open_tree(2), move_mount(2) and mount_setattr(2): their numbers, the same on every architecture, and flags of
# <linux/mount.h> and <linux/fcntl.h>. glibc has functions for them since 2.36.
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_HERE, _EMPTY_PATH, _RECURSIVE, _CLONE = -100, 0x1000, 0x8000, 1
_MOVE_EMPTY_PATH = 4
_PRIVATE = 1 << 18


def mount_obstacle(folder: Path | None = None) -> Problem | None:
    """Return why no file system can be mounted below ``folder`` (default: the temporary directory).

    One is mounted and unmounted: nothing else shows what a container or a security module forbids.
    """
    try:
        mount_point = Path(tempfile.mkdtemp(prefix="mount-", dir=folder))
    except OSError as error:
        advice = "free some space there, or set TMPDIR to another directory"
        return Problem(f"no directory can be created to mount at: {error}", advice)
    try:
        os.close(attach(mount_point))
        detach(mount_point)
    except DataError as error:
        return problem_of(error)
    finally:
        with suppress(OSError):
            mount_point.rmdir()
    return None


def attach(mount_point: Path) -> int:
    """Mount a read-only FUSE file system at an empty directory; return the descriptor that its server reads.

    The mount is dead once every copy of the descriptor is closed. Raises `DataError` with the reason and the next step.
    """
    if not Path(DEVICE).exists():
        raise DataError(f"there is no {DEVICE}", "load the kernel's module fuse, or give the device to the container")
    if os.geteuid() == 0:
        return _attach_as_root(mount_point)
    helper = _helper()
    if not helper:
        what = "an unprivileged user mounts through fusermount3, which is not installed"
        raise DataError(what, advice="install it: apt install fuse3")
    return _attach_by(helper, mount_point)


def bind_read_only(folder: Path, mount_point: Path) -> None:
    """Mount a directory and the mounts below it read-only at an empty directory, as ``mount --rbind -o ro`` does.

    The copy of the mounts becomes read-only and private before it is visible: neither a write nor an unmount of it,
    at any moment, reaches the directory. Raises `DataError` with the reason and the next step.
    """
    flags = _READ_ONLY | _NO_SUID | _NO_DEVICES
    attributes = struct.pack("=4Q", flags, 0, _PRIVATE, 0)
    tree = -1
    try:
        tree = system.call("syscall", _OPEN_TREE, _HERE, os.fsencode(folder), _CLONE | _RECURSIVE | os.O_CLOEXEC)
        system.call("syscall", _MOUNT_SETATTR, tree, b"", _EMPTY_PATH | _RECURSIVE, attributes, len(attributes))
        system.call("syscall", _MOVE_MOUNT, tree, b"", _HERE, os.fsencode(mount_point), _MOVE_EMPTY_PATH)
    except OSError as error:
        step = "run the job as root with Linux 5.12 or newer, in a container with: docker run --cap-add SYS_ADMIN"
        raise DataError(f"mounting {str(folder)!r} read-only was refused: {error.strerror}", advice=step) from error
    finally:
        if tree >= 0:
            os.close(tree)


def detach(mount_point: Path) -> None:
    """Unmount every mount at and below ``mount_point``, in whatever state it and its readers are; there may be none.

    Raises `DataError` when one stays: nothing below ``mount_point`` may be removed then.
    """
    error: OSError | None = None
    for mounted in reversed(mounted_below(mount_point)):
        try:
            _detach_one(mounted)
        except OSError as refused:  # noqa: PERF203 - the others are unmounted nevertheless
            error = refused
    if left := mounted_below(mount_point):
        what = f"{os.fsdecode(left[0])!r} cannot be unmounted: {error or 'it is mounted again each time'}"
        raise DataError(what, advice="stop what reads it: fuser --mount")


def mounted_below(path: Path) -> list[bytes]:
    """Return the FUSE and read-only mounts at and below ``path``, the oldest first."""
    # Only the parent is resolved: access to the mount itself could hang.
    whole = os.fsencode(os.path.join(os.path.realpath(path.parent), path.name))  # noqa: PTH118
    mounts = []
    with suppress(FileNotFoundError):
        for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
            # proc(5): the mount point is field 5, its options are field 6, and the type follows the hyphen.
            fields, _, rest = line.partition(b" - ")
            mounted, options = _unescape(fields.split(b" ")[4]), fields.split(b" ")[5]
            is_own = rest.split(b" ")[0] == KIND.encode() or b"ro" in options.split(b",")
            if is_own and (mounted == whole or mounted.startswith(whole + b"/")):
                mounts.append(mounted)
    return mounts


def _attach_as_root(mount_point: Path) -> int:
    try:
        device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise DataError(f"{DEVICE} cannot be opened: {error.strerror}", "give the device to the container") from error
    options = f"fd={device},rootmode={stat.S_IFDIR:o},user_id={os.geteuid()},group_id={os.getegid()}"
    # Other users than root must read, too: ranks and containers may run as other users.
    options += ",allow_other,default_permissions"
    flags = _READ_ONLY | _NO_SUID | _NO_DEVICES
    try:
        system.call("mount", b"scriptmode", os.fsencode(mount_point), KIND.encode(), flags, options.encode())
    except OSError as error:
        os.close(device)
        step = "start the container with: docker run --device /dev/fuse --cap-add SYS_ADMIN"
        raise DataError(f"mounting a FUSE file system was refused: {error.strerror}", advice=step) from error
    return device


def _attach_by(helper: str, mount_point: Path) -> int:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        options = f"ro,nosuid,nodev,default_permissions,fsname=scriptmode,subtype={KIND.partition('.')[2]}"
        # The helper sends the descriptor over the socket that this variable names.
        environment = {"_FUSE_COMMFD": str(theirs.fileno())}
        reason = "it printed no reason"
        try:
            _run((helper, "-o", options, "--", str(mount_point)), environment, theirs.fileno())
        except OSError as error:
            reason = str(error)
        theirs.close()
        descriptors = socket.recv_fds(ours, 1, 1)[1]
    if not descriptors:
        # The helper opens the device with the rights of its user.
        may_open = os.access(DEVICE, os.R_OK | os.W_OK)
        step = f"make {helper} setuid root: chmod u+s" if may_open else f"give {DEVICE} the mode 0666, as udev does"
        raise DataError(f"mounting through {helper} was refused: {reason}", advice=step)
    os.set_inheritable(descriptors[0], False)  # noqa: FBT003
    return descriptors[0]


def _detach_one(mounted: bytes) -> None:
    """Unmount lazily; raise ``OSError`` with the reason."""
    # No link is followed: a container may have created one since the mounts were read.
    with beneath.Directory("/") as root, root.at(os.fsdecode(mounted)[1:], links=False) as at:
        try:
            system.call("umount2", os.fsencode(f"/proc/self/fd/{at.dir_fd}/{at.name}"), _DETACH | _NO_FOLLOW)
        except OSError as error:
            if not (helper := _helper()):
                raise OSError(error.strerror) from error
            _run((helper, "-u", "-q", "-z", "--", os.fsdecode(mounted)), {})


def _run(argv: tuple[str, ...], environment: dict[str, str], *descriptors: int) -> None:
    """Run the helper; raise ``OSError`` with its error output in one line if it fails."""
    # Not by `run_program`, whose files need space on a disk: mounts are removed on a full one, too.
    try:
        done = subprocess.run(
            argv,
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", **environment},
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(str(error)) from error
    if done.returncode:
        message = " ".join(done.stderr.decode(errors="replace").split())
        raise OSError(message or f"{argv[0]} ended with exit code {done.returncode}")


def _helper() -> str:
    """Return the helper's path, "" if it is not installed."""
    paths = (shutil.which(name) or shutil.which(name, path="/usr/bin:/bin") for name in HELPERS)
    return next(filter(None, paths), "")


def _unescape(path: bytes) -> bytes:
    for character in b" \t\n\\":
        path = path.replace(b"\\%03o" % character, bytes([character]))
    return path
