"""Which of a job's log lines are wanted: of some hosts alone, or the last of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scriptmode.errors import SpecError
from scriptmode.platforms.base import host_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from scriptmode.job import TrainingJob
    from scriptmode.platforms.base import LogEvent


@dataclass(frozen=True)
class Choice:
    """The hosts whose lines are wanted (none named: all), and how many of the lines that each has so far."""

    hosts: tuple[str, ...] = ()
    tail: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.hosts, tuple) or not all(isinstance(host, str) for host in self.hosts):
            raise SpecError(f"hosts is {self.hosts!r}; give names of hosts, such as ['algo-1']")
        if self.tail is not None and (isinstance(self.tail, bool) or not isinstance(self.tail, int) or self.tail < 0):
            raise SpecError(f"tail is {self.tail!r}; give a whole number of lines, 0 or more")


def chosen(hosts: object, tail: int | None) -> Choice:
    """Give the choice that a caller means; one host may be named alone. Raises `SpecError`."""
    names = (hosts,) if isinstance(hosts, str) else tuple(hosts) if isinstance(hosts, (list, tuple, set)) else hosts
    return Choice(names, tail)  # type: ignore[arg-type]


def events(
    job: TrainingJob,
    choice: Choice,
    *,
    follow: bool,
    on_description: Callable[[dict[str, Any]], None] | None = None,
) -> Iterator[LogEvent]:
    """Give the lines that are wanted, as the platform gives them; raise `SpecError` for a host that is not there."""
    if choice.hosts:
        _check_hosts(choice.hosts, job.describe())
    skipped: Counter[str] = Counter()
    if choice.tail is not None:
        # Read twice rather than kept: a log may be larger than the memory.
        events = job.platform.log_events(job.name, follow=False)
        skipped.update(event.host for event in events if not event.continues)
        for host in skipped:
            skipped[host] = max(0, skipped[host] - choice.tail)
    lines = job.platform.log_events(job.name, follow=follow, on_description=on_description)
    if choice == Choice():
        return lines
    return _wanted(lines, choice.hosts, skipped)


def _wanted(lines: Iterable[LogEvent], hosts: tuple[str, ...], skipped: Counter[str]) -> Iterator[LogEvent]:
    for event in lines:
        if skipped[event.host]:
            skipped[event.host] -= not event.continues
        elif not hosts or event.host in hosts:
            yield event


def _check_hosts(wanted: tuple[str, ...], description: Mapping[str, Any]) -> None:
    known = host_names(description)
    for host in wanted:
        if known and host not in known:
            there = known[0] if len(known) == 1 else f"{known[0]} to {known[-1]}"
            raise SpecError(f"training job {description['TrainingJobName']} has no host {host!r}; it has {there}")
