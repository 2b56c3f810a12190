"""Disks of the tests' own: an ext4 file system whose power is cut, and a file system that is easily full."""

import fcntl
import os
import shutil
import signal
import struct
import subprocess
from contextlib import contextmanager, suppress

import pytest
from fakes.processes import processes_naming, until

#: linux/ext4.h: _IOR('X', 125, __u32). Nothing is written afterwards, and every access fails with EIO.
_SHUTDOWN = 0x8004587D
#: What of the journal is on the disk: what was committed before, or everything that was done (but no file's content).
JOURNAL_LOST, JOURNAL_WRITTEN = 2, 1
#: The journal is committed by fsync alone, and a rename does not write out what the file holds.
_OPTIONS = "loop,commit=600,noauto_da_alloc"


class PowerCut:
    """An ext4 file system in a file, mounted at ``folder``, which loses at `cut` what was not made durable."""

    def __init__(self, scratch, size="96M"):
        self._image = scratch / "disk.img"
        self.folder = scratch / "disk"
        self.folder.mkdir()
        _run("truncate", "-s", size, self._image)
        _run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", self._image)
        _mount_or_skip(*self._mounting())

    def fail(self, journal=JOURNAL_WRITTEN):
        """Refuse each access from now on with EIO, as a disk does that was pulled out."""
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", journal))
        finally:
            os.close(descriptor)

    def cut(self, journal):
        """Lose what is not on the disk, and every process that uses it; then mount what is left."""
        self.fail(journal)
        self._kill()
        self._unmount()
        # A mount namespace that another test made meanwhile may still hold the file system of the first file.
        cut = self._image
        self._image = cut.with_name(f"after-{cut.name}")
        _run("cp", "--sparse=always", cut, self._image)
        _run(*self._mounting())

    def close(self):
        self._kill()
        self._unmount()

    def _mounting(self):
        return "mount", "-t", "ext4", "-o", _OPTIONS, self._image, self.folder

    def _unmount(self):
        until(lambda: subprocess.run(("umount", self.folder), check=False, capture_output=True).returncode == 0)

    def _kill(self):
        def left():
            for pid in (found := processes_naming(f"{self.folder}/")):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return found

        until(lambda: not left())


@contextmanager
def small_disk(folder, kind, size="16M"):
    """Mount a new file system of ``size`` at a new folder: a tmpfs, or ext4 in a file beside the folder."""
    _require("mount", "losetup", "mkfs.ext4")
    folder.mkdir()
    if kind == "tmpfs":
        _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder)
    else:
        image = folder.with_name(f"{folder.name}.img")
        _run("truncate", "-s", size, image)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", image)
        _mount_or_skip("mount", "-t", "ext4", "-o", "loop", image, folder)
    try:
        yield folder
    finally:
        _run("umount", "--lazy", folder)


def fill(folder, free=0):
    """Fill the disk of a folder but for ``free`` bytes; return the file that fills it."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)
        file.truncate(max(0, file.tell() - free))
    return filler


@contextmanager
def power_cut(scratch):
    """Give a `PowerCut`; skip the test where none can be made."""
    _require("mkfs.ext4", "losetup", "mount")
    disk = PowerCut(scratch)
    try:
        yield disk
    finally:
        disk.close()


def _require(*programs):
    """Skip the test where one may not mount; the programs belong to the packages that .ci/packages installs."""
    if os.geteuid() != 0:
        pytest.skip("mounting a disk of the test's own needs root")
    for program in programs:
        assert shutil.which(program, path=_path()), f"{program} is missing; run .ci/packages all"


def _mount_or_skip(*words):
    try:
        _run(*words)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"an ext4 file system cannot be mounted from a file here: {error.stderr.strip()}")


def _path():
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def _run(*words):
    words = tuple(map(str, words))
    subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, "PATH": _path()})
