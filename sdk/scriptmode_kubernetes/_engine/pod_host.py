"""The host in a pod, as its agent in the other container of the pod starts, signals and ends it."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.engines import Fleet, Problem, Sandbox, StagingArea, process_tree
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode.engines import Job, JobFolder

#: Seconds from the end of the container's first process to its exit code, which it writes before.
_CODE_SECONDS = 1.0


class PodFleet(Fleet):
    """The host of this pod, for its agent: the program of the container ``train``."""

    def __init__(self, folder: JobFolder, job: Job, host: str) -> None:
        self._job = job
        self.staging = StagingArea(folder.channels, mount_obstacle=Problem("the containers of a pod share no mounts"))
        self._sandbox = Sandbox(host, folder.host(host), contract.DEFAULT_BASE_DIR)
        self.sandboxes = {host: self._sandbox}
        self._control = folder.path / "control"
        # Before the script runs, which may write the file.
        self._process = int((self._control / "pid").read_text(encoding="utf-8"))
        self._ended_since: float | None = None
        log = self._control / "log"
        log.touch()
        log.chmod(0o666)
        os.link(log, folder.log(host))

    def start_host(self, host: str) -> int:  # noqa: ARG002 - the only one
        """Let the container run the host's program, which is no child of the agent."""
        self._sandbox.open_to_all_users()
        self._sandbox.open_to_all_users(self._sandbox.checkpoints(self._job.request.output), files=True)
        (self._control / "start").touch()
        return 0

    def poll_host(self, host: str) -> int | None:  # noqa: ARG002
        """Return the exit code once the program ended, ``-n`` for signal n, else None."""
        with suppress(OSError, ValueError):
            # The script can write the file, too.
            code = int((self._control / "code").read_text(encoding="utf-8")) % 256
            return 128 - code if code - 128 in signal.valid_signals() else code
        if Path(f"/proc/{self._process}").exists():
            return None
        self._ended_since = self._ended_since or time.monotonic()
        return -signal.SIGKILL if time.monotonic() - self._ended_since > _CODE_SECONDS else None

    def signal_host(self, host: str, number: int) -> None:  # noqa: ARG002
        """Send a signal to the program, SIGKILL to all its descendants, too."""
        for pid in process_tree.children(self._process):
            if number == signal.SIGKILL:
                process_tree.kill_tree(pid)
            else:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def find_process(self, host: str) -> int:  # noqa: ARG002
        """Return the process ID of the container's first process, which both containers see."""
        return self._process

    def release_machine(self) -> Problem | None:
        """End the other container: its processes are no descendants of the agent."""
        process_tree.kill_tree(self._process)
        return None
