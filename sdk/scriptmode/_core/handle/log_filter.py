"""The log filter: only the lines of some hosts, or only the last lines of each host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from scriptmode._core.platforms.registry import Platform
from scriptmode._core.spec.job_description import JobDescription
from scriptmode._core.spec.service_values import LogEvent
from scriptmode.errors import SpecError, invalid


@dataclass(frozen=True)
class LogFilter:
    """The lines of a job's log to read: of some hosts (none: all), and the last ``tail`` that each has so far.

    One name stands for itself. Raises `SpecError` for a value of another kind.
    """

    hosts: Collection[str] = ()
    tail: int | None = None

    def __post_init__(self) -> None:
        hosts = (self.hosts,) if isinstance(self.hosts, str) else self.hosts
        if not isinstance(hosts, (list, tuple, set)) or not all(isinstance(host, str) for host in hosts):
            raise invalid("hosts", f"is {hosts!r}", "give names of hosts, such as ['algo-1']")
        object.__setattr__(self, "hosts", tuple(hosts))
        if self.tail is not None and (isinstance(self.tail, bool) or not isinstance(self.tail, int) or self.tail < 0):
            raise invalid("tail", f"is {self.tail!r}", "give a whole number of lines, 0 or more")


ALL_LINES = LogFilter()


def filtered_events(
    platform: Platform,
    name: str,
    log_filter: LogFilter,
    *,
    follow: bool,
    on_description: Callable[[JobDescription], None] | None = None,
) -> Iterator[LogEvent]:
    """Return the log lines of job ``name`` that pass the filter, as a platform's ``log_events`` does.

    Raises `SpecError` for a host that the job does not have.
    """
    takes = line_selector(platform, name, log_filter)
    lines = platform.log_events(name, follow=follow, on_description=on_description)
    return lines if log_filter == ALL_LINES else filter(takes, lines)


def line_selector(platform: Platform, name: str, log_filter: LogFilter) -> Callable[[LogEvent], bool]:
    """Return what says of a job's log lines, as they are read from the start, whether a filter passes them."""
    if log_filter.hosts:
        known = platform.describe(name).hosts
        for host in log_filter.hosts if known else ():
            if host not in known:
                existing = known[0] if len(known) == 1 else f"{known[0]} to {known[-1]}"
                what = f"training job {name} has no host {host!r}"
                raise SpecError(what, f"it has {existing}", argument="hosts")
    #: Lines of each host that are still to be passed over.
    skipped: Counter[str] = Counter()
    if log_filter.tail is not None:
        # Read twice instead of stored: a log may be larger than the memory.
        skipped.update(event.host for event in platform.log_events(name, follow=False) if not event.continues)
        for host in skipped:
            skipped[host] = max(0, skipped[host] - log_filter.tail)

    def takes(event: LogEvent) -> bool:
        if skipped[event.host]:
            skipped[event.host] -= not event.continues
            return False
        return not log_filter.hosts or event.host in log_filter.hosts

    return takes
