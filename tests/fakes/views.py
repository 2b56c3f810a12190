"""Mounts of objects that a test can have fail, hang or count from outside the process that serves them."""

import os
import subprocess
import threading
import time
from contextlib import contextmanager
from ctypes import CDLL
from pathlib import Path
from tempfile import TemporaryDirectory

from fakes import fresh
from fakes.installed import require_mounts
from fakes.processes import until

from scriptmode.errors import DataNotFoundError
from scriptmode_local._data import file_prefetch
from scriptmode_local._data.fast_file import ObjectTree
from scriptmode_local._data.object_store import StoredObject
from scriptmode_local._inputs.fuse_mount import FuseMount
from scriptmode_local._system.forked_tasks import Tasks

#: An unprivileged user id, as Debian has it.
UNPRIVILEGED = 65534
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
    """Begins mounts in an interpreter without threads, as agents do, and takes them all away at the end."""

    interpreter = None

    def __init__(self):
        Views.interpreter = Views.interpreter or fresh.Interpreter()
        self.begun = []

    def begin(self, make, place):
        """Begin to mount the tree that ``make`` returns, which can be pickled."""
        require_mounts()
        view = View(Views.interpreter, make, place)
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


class View:
    """A `FuseMount` of another interpreter."""

    def __init__(self, interpreter, make, place):
        self._interpreter = interpreter
        self.mount_point = place
        self._tell("begin", make)

    def poll(self):
        self._tell("poll")

    def end(self):
        self._tell("end")

    def reap(self):
        """Wait for the end of its server, as what kills all children does."""
        self._interpreter.call(os.waitpid, self.pid, 0)

    def _tell(self, verb, *arguments):
        told = self._interpreter.call(_do, verb, self.mount_point, *arguments)
        self.pid, self.is_up, self.error, self.unreadable = told


_mounts = {}


def _do(verb, place, *arguments):
    """Do one thing with the mount at a place of this interpreter; return what is to be known of it."""
    if verb == "begin":
        _mounts[place] = FuseMount(*arguments, place, Tasks(), "the server")
    else:
        getattr(_mounts[place], verb)()
    mount = _mounts[place]
    return mount.pid, mount.is_up, mount.error, mount.unreadable


def tree(entries, create_store):
    """Return the tree of objects whose store is created where they are served; ``entries`` may be found there, too."""
    store = create_store()
    return ObjectTree(entries(store) if callable(entries) else entries, lambda _: store)


class Hanging:
    """A store whose reads hang for ever, where the server of the mount waits for them for a second."""

    def __init__(self):
        file_prefetch.STALL_SECONDS = 1.0

    def read(self, _item, _start, _end):
        threading.Event().wait()


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
