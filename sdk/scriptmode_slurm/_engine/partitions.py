"""The partitions of a cluster: their time limits, and their nodes, whatever state these are in. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from scriptmode.errors import PlatformError

#: What `parse_partitions` reads (sinfo(1), --format).
FORMAT = "%P|%l|%L|%D"


class Partition(NamedTuple):
    """A partition: its time limit and that of jobs that name none, in seconds (None: no limit), and its nodes."""

    name: str
    maximum: int | None
    default: int | None
    nodes: int
    is_default: bool = False


def parse_partitions(output: str) -> Iterator[Partition]:
    """Parse the output of sinfo."""
    for line in output.splitlines():
        name, maximum, default, nodes = line.split("|")
        limits = parse_time_limit(maximum), parse_time_limit(default)
        yield Partition(name.rstrip("*"), *limits, int(nodes), is_default=name.endswith("*"))


def parse_time_limit(text: str) -> int | None:
    """Return the seconds of a value of --time (sbatch(1)); None for one without end, or of another form."""
    days, separator, rest = text.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdigit() for part in (*parts, *([days] if separator else ()))):
        return None
    # Days are followed by hours; one number alone is minutes, and two are minutes and seconds.
    units = (3600, 60, 1) if separator or text.count(":") > 1 else (60, 1)
    return int(days or 0) * 86400 + sum(int(part) * unit for part, unit in zip(parts, units))


def find_partitions(name: str, partitions: Sequence[Partition]) -> list[Partition]:
    """Return the partition of a name, those of a list of names, or for "" the default one."""
    names = name.split(",")
    return [partition for partition in partitions if partition.name in names or (partition.is_default and not name)]


def require_nodes(name: str, number: int, partitions: Sequence[Partition]) -> None:
    """Raise `PlatformError` where a partition never has so many nodes; Slurm queues such a job."""
    # A variable of the user, or the site, may choose another partition than the default one.
    choices = find_partitions(name, partitions) if name else partitions
    largest = max(choices, key=lambda partition: partition.nodes, default=None)
    if largest is not None and largest.nodes < number:
        what = f"{number} hosts need as many nodes, and partition {largest.name} has {largest.nodes}"
        advice = "use fewer hosts, or another partition: sinfo --format='%P %D'"
        raise PlatformError(what, advice, argument="instance_count")
