"""The times of the lines of the logs of all jobs, which are read once for all clients."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from scriptmode._core.spec.job_description import JobDescription
from scriptmode._core.spec.service_values import UNREADABLE
from scriptmode_local import LocalPlatform
from scriptmode_local._store.log_times import LogTimes
from scriptmode_serve._operations.log_pages import LogFile

#: The most logs whose times are kept, those that were asked for last.
_MOST = 2000


class KnownTimes:
    """The times of the logs of all jobs of a platform, as the agents of the jobs record them."""

    def __init__(self, platform: LocalPlatform) -> None:
        self._platform = platform
        # By the creation of its job, too: another job may get the name.
        self._times = lru_cache(_MOST)(lambda log, _created: (threading.Lock(), LogTimes(Path(log))))

    def logs(self, job: JobDescription) -> Iterator[tuple[str, LogFile]]:
        """Yield each host of a job with its log, whose times are up to date.

        Raises `JobNotFoundError` and ``OSError``.
        """
        for host, location in self._platform.log_locations(job.name).items():
            lock, times = self._times(location, job.created)
            with lock:
                try:
                    # The agent of a job that runs adds to them.
                    length = times.update() if job.has_ended else times.read()
                except BlockingIOError:  # another server records them
                    length = times.read()
            yield host, LogFile(times, length, job.has_ended)

    def jobs(self) -> list[str]:
        """Return the names of the jobs that can be read."""
        return [job["TrainingJobName"] for job in self._platform.list() if job["TrainingJobStatus"] != UNREADABLE]
