"""The values of a tuning job's objective, from the log of a training job while it is written."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode.core.spec.metric_definitions import Definition
from scriptmode.platforms.local.store.host_logs import LogReader

if TYPE_CHECKING:
    from scriptmode.platforms.local.store.job_store import JobFolder


class ObjectiveReader:
    """Reader of the objective of one training job: of the first host whose log has values.

    Values of several hosts have no common order, and hosts that train together report the same.

    Args:
        folder: The training job.
        name: Name of the metric.
        regex: The regular expression of its definition.
    """

    def __init__(self, folder: JobFolder, name: str, regex: str) -> None:
        hosts = folder.read_job().request.resources.hosts
        self._readers = [(LogReader(folder.log(host)), Definition(name, regex)) for host in hosts]
        self._chosen: int | None = None
        #: The last value, None while there is none.
        self.last: float | None = None

    def read(self, *, final: bool) -> list[float]:
        """Return the values since the last call; with ``final`` the log is complete."""
        found: list[float] = []
        for index, (reader, definition) in enumerate(self._readers):
            if self._chosen not in (None, index):
                continue
            with suppress(OSError):
                for line, _ in reader.lines(final=final):
                    found += definition.values(line)
            if found:
                self._chosen = index
                break
        if found:
            self.last = found[-1]
        return found

    def close(self) -> None:
        """Close the logs."""
        for reader, _ in self._readers:
            reader.close()
