"""The steps of a job: the values of a metric in the logs of its hosts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from scriptmode._core.spec.metric_definitions import Definition, MetricFinder
from scriptmode_local._store.agent_log import STARTS_AGAIN
from scriptmode_local._store.host_logs import LogReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from scriptmode_local._store.job_store import JobFolder


class StepReader:
    """Reader of a running job's logs: the steps of each of its runs, by host."""

    def __init__(self, folder: JobFolder, hosts: Sequence[str], definitions: Iterable[tuple[str, str]]) -> None:
        self._readers = {host: LogReader(folder.log(host)) for host in hosts}
        self._finder = MetricFinder([Definition(name, regex) for name, regex in definitions])
        self.runs: dict[str, list[list[int]]] = {host: [[]] for host in hosts}

    def read(self, *, final: bool = False) -> None:
        """Read what the hosts have written since the last call."""
        for host, reader in self._readers.items():
            for line, _ in reader.lines(final=final):
                if line.startswith(STARTS_AGAIN):
                    self.runs[host].append([])
                values = (value for _, value in self._finder.find(line))
                self.runs[host][-1] += map(int, filter(math.isfinite, values))

    @property
    def numbers(self) -> list[int]:
        """The steps of all hosts and runs."""
        return [step for runs in self.runs.values() for run in runs for step in run]

    def close(self) -> None:
        """Close the logs."""
        for reader in self._readers.values():
            reader.close()


class Resumption(NamedTuple):
    """How a host went on: its last step before, its first step after, and how many it made twice."""

    before: int
    first: int
    lost: int


def find_resumption(runs: Sequence[Sequence[int]], interval: int) -> Resumption | None:
    """Return how a host went on after its first run, None without steps of both; ``interval`` is from line to line."""
    before, after = runs[0], next(filter(None, runs[1:]), None)
    if not before or not after:
        return None
    last = max(before)
    return Resumption(last, after[0], 0 if after[0] > last else last - after[0] + interval)
