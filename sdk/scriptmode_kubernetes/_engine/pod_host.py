"""The host in a pod, as its agent in the other container of the pod starts, signals and ends it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.engines import Fleet, Host, Problem, Sandbox, StagingArea, process_tree
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode.engines import Job, JobFolder

#: Seconds from the end of the container's first process to its exit code, which it writes before.
_CODE_SECONDS = 1.0


class PodHost(Host):
    """The program of the container ``train``."""

    def __init__(self, control: Path, process: int) -> None:
        self._control = control
        self._process = process
        self._is_started = False
        self._ended_since: float | None = None

    def find_process(self) -> int:
        """Return the process ID of the container's first process, which both containers see."""
        return self._process

    def start(self) -> None:
        """Let the container run the host's program."""
        (self._control / "start").touch()
        self._is_started = True

    def poll(self) -> int | None:
        """Return the exit code once the program ended, ``-n`` for signal n, else None."""
        if not self._is_started:
            return None
        with suppress(OSError, ValueError):
            # The script can write the file, too.
            code = int((self._control / "code").read_text(encoding="utf-8")) % 256
            return 128 - code if code - 128 in signal.valid_signals() else code
        if Path(f"/proc/{self._process}").exists():
            return None
        self._ended_since = self._ended_since or time.monotonic()
        return -signal.SIGKILL if time.monotonic() - self._ended_since > _CODE_SECONDS else None

    def signal(self, number: int) -> None:
        """Send a signal to the program, SIGKILL to all its descendants, too."""
        for pid in process_tree.children(self._process):
            if number == signal.SIGKILL:
                process_tree.kill_tree(pid)
            else:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)


class PodFleet(Fleet):
    """The host of this pod, for its agent."""

    def __init__(self, folder: JobFolder, job: Job, host: str) -> None:
        self._job = job
        self.staging = StagingArea(folder.channels, mount_obstacle=Problem("the containers of a pod share no mounts"))
        self.sandboxes = {host: Sandbox(host, folder.host(host), contract.DEFAULT_BASE_DIR)}
        self._host = host
        self._control = folder.path / "control"
        # Before the script runs, which may write the file.
        self._process = int((self._control / "pid").read_text(encoding="utf-8"))
        log = self._control / "log"
        log.touch()
        log.chmod(0o666)
        os.link(log, folder.log(host))

    def create_hosts(self) -> Mapping[str, Host]:
        """Return the host, not started."""
        for sandbox in self.sandboxes.values():
            sandbox.open_to_all_users()
            sandbox.open_to_all_users(sandbox.checkpoints(self._job.request.output), files=True)
        return {self._host: PodHost(self._control, self._process)}

    def release_machine(self) -> Problem | None:
        """End the other container: its processes are no descendants of the agent."""
        process_tree.kill_tree(self._process)
        return None
