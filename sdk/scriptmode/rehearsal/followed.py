"""A job that a rehearsal follows: its logs, its state, its processes and its model."""

from __future__ import annotations

import hashlib
import os
import tarfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from scriptmode.core.handle.activity import find_events
from scriptmode.data import file_uris
from scriptmode.errors import JobNotFoundError
from scriptmode.platforms.local.store.job_store import JobStore
from scriptmode.platforms.opt_ml import checkpoints_path
from scriptmode.rehearsal.steps import LogWatch
from scriptmode_runtime import contract
from scriptmode_runtime.processes import process_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode.core.spec.job_description import JobDescription
    from scriptmode.job import TrainingJob

#: Seconds between two looks at the logs, and between two at the job's state.
_POLL_SECONDS, _DESCRIBE_SECONDS = 0.02, 0.1
#: Seconds in which the processes of a job that has ended are gone.
_TIDY_SECONDS = 10.0
#: Seconds in which a job ends whose processes were killed: its agent copies the last checkpoints.
_END_SECONDS = 30.0


class HungError(Exception):
    """A job did not end within its bound, and was stopped."""


class FollowedJob:
    """A job that is followed by its logs and its state; ``changed`` is when each secondary status was first seen."""

    def __init__(self, job: TrainingJob, data_dir: Path) -> None:
        self.job = job
        self.folder = JobStore(data_dir).find(job.name)
        self.description: JobDescription = job.platform.describe(job.name)
        self.hosts = self.description.job.resources.hosts
        self.watch = LogWatch(self.folder, self.description.job)
        self.began = time.monotonic()
        self.changed: list[tuple[str, float]] = []
        #: When each new state of a host's checkpoint directory was written, by the monotonic clock.
        self.saves: dict[str, list[float]] = {host: [] for host in self.hosts}
        self._saved: dict[str, int] = {}
        self._next = 0.0

    def look(self) -> None:
        """Read what is new."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _DESCRIBE_SECONDS
            self.description = self.job.platform.describe(self.job.name)
            passed = [each.status for each in self.description.transitions]
            self.changed += [(status, time.monotonic()) for status in passed[len(self.changed) :]]
            for host, saves in self.saves.items():
                if (newest := max(self._checkpoint_times(host), default=0)) > self._saved.get(host, 0):
                    self._saved[host] = newest
                    saves.append(time.monotonic() - time.time() + newest / 1e9)
        self.watch.read(final=self.description.has_ended)

    def _checkpoint_times(self, host: str) -> Iterator[int]:
        """Yield when each file in a host's checkpoint directory was written."""
        path = checkpoints_path(self.description.job.output)
        for folder, _, names in os.walk(self.folder.host(host) / path):
            for name in names:
                with suppress(OSError):
                    yield Path(folder, name).stat().st_mtime_ns

    @property
    def has_saved(self) -> bool:
        """Whether there was a file in a checkpoint directory."""
        return bool(self._saved)

    def follow(self, bound: float, each: Callable[[], None] = lambda: None) -> None:
        """Follow the job to its end, and call ``each`` all the time; raise `HungError` after ``bound`` seconds."""
        try:
            self.look()
            while not self.description.has_ended:
                self._require_in_time(bound)
                each()
                time.sleep(_POLL_SECONDS)
                self.look()
        except BaseException:
            # Also after Ctrl-C: nothing else knows of the job.
            self._end()
            raise
        finally:
            self.watch.close()

    def _require_in_time(self, bound: float) -> None:
        if time.monotonic() > self.began + bound:
            raise HungError(f"{self.job.name} had not ended after {bound:.0f} s, and was stopped")

    def _end(self) -> None:
        """Stop a job, kill its processes, and wait for its end: its agent uses its directories."""
        platform, name = self.job.platform, self.job.name
        with suppress(JobNotFoundError):
            platform.stop(name)
            for pid in self._processes():
                process_tree.kill_tree(pid)
            process_tree.wait_until(lambda: platform.describe(name).has_ended, _END_SECONDS)

    def _processes(self) -> list[int]:
        return process_tree.find_by_variable(f"{contract.BASE_DIR_VARIABLE}={self.folder.hosts}")

    def count_orphans(self) -> int:
        """Return how many processes the ended job has left."""
        process_tree.wait_until(lambda: not self._processes(), _TIDY_SECONDS)
        return len(self._processes())

    def losses(self) -> list[str]:
        """Return what is missing from what the ended job has left."""
        return [str(each) for each in find_events(self.job.name, self.job.platform) if each.is_loss]

    def since(self, status: str) -> float | None:
        """Return when a secondary status was first seen, None if never."""
        return next((moment for each, moment in self.changed if each == status), None)

    def training_seconds(self) -> float:
        """Return the seconds from the start of the scripts to their end, over all runs."""
        began = self.since("Training")
        ended = self.since("Uploading") or self.changed[-1][1]
        return ended - began if began is not None else 0.0

    def whole_seconds(self) -> float:
        """Return the seconds for which the job was followed."""
        return self.changed[-1][1] - self.began

    def model(self) -> dict[str, str] | None:
        """Return the digest of each file of the model by its name; None for a job without an archive to read."""
        uri = self.job.model_data
        if not uri:
            return None
        found = {}
        with suppress(OSError, tarfile.TarError), tarfile.open(file_uris.file_path(uri)) as archive:
            for member in archive:
                if file := archive.extractfile(member):
                    found[member.name] = hashlib.sha256(file.read()).hexdigest()
            return found
        return None
