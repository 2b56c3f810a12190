"""A mount that a child process serves, as the process that began it sees it."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Callable

from scriptmode.data import fast_file, fuse_mounts
from scriptmode.platforms.local.system import process_tree
from scriptmode.platforms.local.system.forked_tasks import ForkedTask

if TYPE_CHECKING:
    from pathlib import Path

    from scriptmode.data.fuse_server import Tree

#: A line of this length goes into a pipe whole (PIPE_BUF), whichever thread writes it.
MESSAGE_CHARACTERS = 600
_POLL_SECONDS = 0.005


class FuseMount:
    """A read-only mount at ``mount_point``, which is made, over the tree that ``make`` gives in the child.

    The process that begins it must have no threads, keeps its descriptor ``lock`` to itself, and must never look below
    ``mount_point``: that waits for the child. Poll until ``is_up`` or ``error`` is set, and now and then afterwards.
    """

    def __init__(self, make: Callable[[], Tree], mount_point: Path, lock: int) -> None:
        self.mount_point = mount_point
        #: Whether the mount is there.
        self.is_up = False
        #: Why it is not there, or not any more; whoever reads then gets errors that say nothing.
        self.error = ""
        #: What could not be read so far, a sentence each; readers got EIO for it.
        self.unreadable: list[str] = []
        mount_point.mkdir(parents=True, exist_ok=True)
        self._pipe, theirs = os.pipe()
        os.set_blocking(self._pipe, False)
        self._said = bytearray()

        def tell(what: str) -> None:
            line = json.dumps(what[:MESSAGE_CHARACTERS], ensure_ascii=False) + "\n"
            # Once the pipe is full nobody reads it, and readers of files must not wait for that.
            with suppress(BlockingIOError):
                os.write(theirs, line.encode("utf-8", "backslashreplace"))

        def serve() -> None:
            os.close(self._pipe)
            os.set_blocking(theirs, False)
            fast_file.mount(make(), mount_point, tell, lambda: tell(""))

        self._task = ForkedTask(serve, lock)
        os.close(theirs)

    @property
    def pid(self) -> int:
        """The child's process number."""
        return self._task.pid

    def poll(self) -> None:
        """See what the child did."""
        if self.error:
            return
        ended = self._ended()
        with suppress(BlockingIOError):
            while chunk := os.read(self._pipe, 65536):
                self._said += chunk
        *lines, rest = bytes(self._said).split(b"\n")
        self._said = bytearray(rest)
        for line in lines:
            if said := json.loads(line):
                self.unreadable.append(said)
            else:
                self.is_up = True
        if ended:
            os.close(self._pipe)
            self._pipe = -1
            self.error = f"the mount at {str(self.mount_point)!r} is gone: {ended}" if self.is_up else ended

    def end(self) -> None:
        """Take the mount away, whoever still reads there, and end the child. Raise `DataError` when it stays."""
        self.poll()
        if not self.error:
            # First of all: when it dies every reader that waits for it goes on with an error.
            self._task.kill()
        fuse_mounts.detach(self.mount_point)
        deadline = time.monotonic() + process_tree.VANISHING_SECONDS
        while not self.error and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            self.poll()
        # It might have mounted just before it died.
        fuse_mounts.detach(self.mount_point)

    def _ended(self) -> str:
        """Say why the child ended; "" while it runs."""
        try:
            if not self._task.poll():
                return ""
        except ChildProcessError:
            return "its process was killed with all others"
        return self._task.error or "somebody unmounted it"
