"""Mounts of objects that a test can have fail, hang or count from outside the process that serves them."""

import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from ctypes import CDLL
from pathlib import Path
from tempfile import TemporaryDirectory

from fakes.installed import require_mounts
from fakes.processes import until

from scriptmode.data.fast_file import ObjectTree
from scriptmode.data.object_store import StoredObject
from scriptmode.errors import DataNotFoundError
from scriptmode.platforms.local.inputs.fuse_mount import FuseMount
from scriptmode.platforms.local.system.forked_tasks import Tasks
from scriptmode_runtime.processes import process_tree

#: An unprivileged user id, as Debian has it.
UNPRIVILEGED = 65534
#: A thread that waits for a client of TLS is in that module all the time.
SETTLING_SECONDS = 2.0
#: CLONE_NEWNS of unshare(2).
NEW_MOUNTS = 0x20000


class WatchedObjects:
    """An `ObjectStore` of contents by path. Every read adds a line ``path start end`` to the file ``log``.

    While a file ``<control>/held`` exists reads wait, and with ``<control>/deleted`` there are no objects any more.
    """

    def __init__(self, contents, control):
        self.contents = {f"s3://b/{path}": content for path, content in contents.items()}
        self.control = control
        self.log = control / "log"

    @property
    def entries(self):
        return [
            (StoredObject(uri, len(content), "v1"), uri[len("s3://b/") :]) for uri, content in self.contents.items()
        ]

    def tree(self):
        return ObjectTree(self.entries, lambda _: self)

    def read(self, item, start, end):
        with self.log.open("a", errors="surrogateescape") as log:
            log.write(f"{item.uri} {start} {end}\n")
        while (self.control / "held").exists():
            time.sleep(0.01)
        if (self.control / "deleted").exists():
            raise DataNotFoundError(f"{item.uri}: there is no such object any more")
        return [memoryview(self.contents[item.uri])[start:end]]

    def reads(self):
        """Return the requests that were read, each as (start, end)."""
        lines = self.log.read_text(errors="surrogateescape").splitlines() if self.log.exists() else []
        return [tuple(int(part) for part in line.split()[-2:]) for line in lines]


class Views:
    """Begins mounts, and takes them all away at the end."""

    def __init__(self):
        self.lock = os.open(os.devnull, os.O_RDONLY)
        self.begun = []

    def begin(self, make, place):
        require_mounts()
        # Agents, which mount, have no threads. Threads of tests may create a context of TLS, without Python's lock.
        process_tree.wait_until(lambda: not _is_inside_openssl(), SETTLING_SECONDS, 0.01)
        view = FuseMount(make, place, Tasks(self.lock))
        self.begun.append(view)
        return view

    def mount(self, make, place):
        view = self.begin(make, place)
        wait(view)
        assert view.is_up, view.error
        return view

    def close(self):
        for view in self.begun:
            view.end()
        os.close(self.lock)


def _is_inside_openssl():
    """Return whether another thread may hold a lock of OpenSSL, which a forked child would wait for for ever."""
    frames = (frame for thread, frame in sys._current_frames().items() if thread != threading.get_ident())
    return any("ssl" in Path(frame.f_code.co_filename).name for frame in frames)


def wait(view):
    """Wait until a mount is there, or is known not to come."""

    def settled():
        view.poll()
        return view.is_up or view.error

    until(settled)


@contextmanager
def plain_folder(base):
    """Yield a new directory that every user may use."""
    folder = Path(base) / f"plain-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir()
    folder.chmod(0o777)
    try:
        yield folder
    finally:
        for root, folders, files in os.walk(folder, topdown=False):
            for name in files:
                Path(root, name).unlink()
            for name in folders:
                Path(root, name).rmdir()
        folder.rmdir()


def drop_root_privileges():
    """Drop root's privileges permanently; without them, nothing changes.

    /dev/fuse is writable for all users afterwards, as with udev, for this process and its children.
    """
    if os.geteuid() != 0:
        return
    CDLL(None).unshare(NEW_MOUNTS)
    with TemporaryDirectory() as folder:
        for command in (
            ("mount", "--make-rprivate", "/"),
            ("mount", "-t", "tmpfs", "devices", folder),
            ("mknod", "-m", "666", f"{folder}/fuse", "c", "10", "229"),
            ("mount", "--bind", f"{folder}/fuse", "/dev/fuse"),
            ("umount", "--lazy", folder),
        ):
            subprocess.run(command, check=True)
    os.setgroups([])
    os.setgid(UNPRIVILEGED)
    os.setuid(UNPRIVILEGED)
