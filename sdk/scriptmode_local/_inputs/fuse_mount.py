"""A FUSE mount that a child process serves, as seen by the parent."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from scriptmode._core.text.messages import Problem
from scriptmode_local._data import mounts
from scriptmode_local._system.forked_tasks import SILENT_SECONDS, Tasks
from scriptmode_runtime._processes import process_tree

if TYPE_CHECKING:
    from scriptmode_local._data.fast_file import ObjectTree


#: A line of this length is written to a pipe atomically (PIPE_BUF), so lines of several threads do not mix.
MESSAGE_CHARACTERS = 600
_POLL_SECONDS = 0.005
#: Reads of the pipe in one poll.
_READS = 4


class FuseMount:
    """A read-only mount at ``mount_point``, which is created, of the tree that ``make`` returns in the child.

    The parent must have no threads, and must never access files below ``mount_point``, which would wait for the child.
    The child reports through a pipe: an empty message when the mount is up,
    and a sentence for each read that failed. Poll until ``is_up`` or ``error`` is set, and regularly afterwards.
    """

    def __init__(self, make: Callable[[], ObjectTree], mount_point: Path, tasks: Tasks, name: str) -> None:
        self.mount_point = mount_point
        #: Whether the mount is in place.
        self.is_up = False
        #: Why the mount failed or disappeared; readers then get errors without a reason.
        self.error: Problem | None = None
        #: A sentence for the first read that failed, if one did; the reader got EIO.
        self.unreadable: list[str] = []
        mount_point.mkdir(parents=True, exist_ok=True)
        self._pipe, theirs = os.pipe()
        os.set_blocking(self._pipe, False)
        #: The beginning of a message whose end has not arrived.
        self._rest = b""

        def tell(what: str) -> None:
            line = json.dumps(what[:MESSAGE_CHARACTERS], ensure_ascii=False) + "\n"
            # The parent may not read while the pipe is full, and readers of files must not wait for it.
            with suppress(BlockingIOError):
                os.write(theirs, line.encode("utf-8", "backslashreplace"))

        def serve() -> None:
            from scriptmode_local._data import fuse_server

            os.close(self._pipe)
            os.set_blocking(theirs, False)
            fuse_server.mount(make(), mount_point, tell, lambda: tell(""))

        self._task = tasks.start(serve, name)
        os.close(theirs)

    @property
    def pid(self) -> int:
        """The child's process ID."""
        return self._task.pid

    def poll(self) -> None:
        """Read the child's messages and whether it ended; never block."""
        if self.error:
            return
        ended = self._ended()
        with suppress(BlockingIOError):
            # More than a pipe holds; a script may read what is unreadable again and again without pause.
            for _ in range(_READS):
                self._rest += os.read(self._pipe, 65536)
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            if message := json.loads(line):
                self.unreadable = self.unreadable or [message]
            else:
                self.is_up = True
                self._task.longest_silence = SILENT_SECONDS
        if ended:
            os.close(self._pipe)
            self._pipe = -1
            gone = Problem(f"the mount at {str(self.mount_point)!r} is gone: {ended}")
            self.error = gone if self.is_up else ended

    def end(self) -> None:
        """Remove the mount, also while it is read, and stop the child; raise `DataError` when it stays."""
        self.poll()
        if not self.error:
            # First of all: the death of the child ends every waiting read with an error.
            self._task.kill()
        mounts.detach(self.mount_point)
        process_tree.wait_until(self._is_gone, process_tree.KILL_SECONDS, _POLL_SECONDS)
        # The child may have mounted just before it died.
        mounts.detach(self.mount_point)

    def _is_gone(self) -> bool:
        self.poll()
        return self.error is not None

    def _ended(self) -> Problem | None:
        try:
            if not self._task.poll():
                return None
        except ChildProcessError:
            return Problem("its process was killed with all others of the job")
        return Problem(self._task.error or "it was unmounted by another process")
