"""The values that a platform returns of a job's hosts: as planned, what they do, their channels' progress. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scriptmode._core.text.messages import format_bytes, format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Seconds without output after which a host is called silent.
_SILENT_SECONDS = 10.0
#: What the bytes of an object of S3 were compared with, where not with a checksum: it has none, they came over TLS, or
#: FastFile mode read not all of them, or not in order.
NOT_VERIFIABLE, TLS_ALONE, IN_PARTS = "not verifiable", "protected by TLS alone", "not verified (read in parts)"


@dataclass(frozen=True)
class ChannelProgress:
    """Progress of a channel: bytes staged before training in File mode, or streamed to all its hosts in Pipe mode.

    ``done`` and ``total`` are bytes; ``total`` is ``None`` where it is unknown. ``epoch`` counts from 0.
    ``verification`` has the number of objects of S3 that were read (in Pipe and FastFile mode each time), by what their
    bytes were compared with: the name of a checksum, or a text of the guide to input data.
    """

    channel: str
    mode: str
    done: int
    total: int | None = None
    epoch: int | None = None
    verification: Mapping[str, int] = field(default_factory=dict)

    @property
    def verified(self) -> str:
        """The counts as text: ``9 objects, 38 MB: 8 verified (CRC64NVME), 1 not verifiable``; "" without any."""
        counts = dict(self.verification)
        if not counts:
            return ""
        total = sum(counts.values())
        # In the other modes an object may be read more than once.
        amount = f"{total:,} {'object' if self.mode == 'File' else 'reading'}{'s' * (total > 1)}"
        unverified = {name: counts.pop(name) for name in (TLS_ALONE, NOT_VERIFIABLE, IN_PARTS) if name in counts}
        parts = []
        if counts:
            kinds = [f"{count:,} {name.upper()}" if len(counts) > 1 else name.upper() for name, count in counts.items()]
            parts.append(f"{sum(counts.values()):,} verified ({', '.join(kinds)})")
        parts += [f"{count:,} {name}" for name, count in unverified.items()]
        size = f", {format_bytes(self.done)}" if self.done else ""
        return f"{amount}{size}: {', '.join(parts)}"


def add_counts(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Return the sums of the counts of both, by name."""
    return {name: counts.get(name, 0) + more.get(name, 0) for name in {**counts, **more}}


@dataclass(frozen=True)
class HostActivity:
    """What a host of a running job does at this moment.

    Attributes:
        line: The end of its log that has no line end yet, such as a progress bar; "" where the log ends with one.
        silent_seconds: Seconds since its last output.
        cpu_percent: CPU usage of all its processes in percent of one core: 200 is two cores.
        memory_bytes: Resident memory of all its processes; pages that they share count for each.
        gpu_percent: Mean usage of the GPUs that its processes use; 0 while they use none of the machine's GPUs.
        gpu_memory_bytes: GPU memory of its processes.

    ``None`` is unknown, also for a host that does not run yet or has ended.
    """

    line: str = ""
    silent_seconds: float | None = None
    cpu_percent: float | None = None
    memory_bytes: int | None = None
    gpu_percent: float | None = None
    gpu_memory_bytes: int | None = None

    @property
    def silence(self) -> str:
        """For how long the host has been silent: ``no output for 12 s``; "" below some seconds."""
        seconds = self.silent_seconds
        return "" if seconds is None or seconds < _SILENT_SECONDS else f"no output for {format_duration(seconds)}"


@dataclass(frozen=True)
class PlannedHost:
    """Environment of one host of a job that is not started: its root directory, the files there, its variables.

    ``files`` holds the content of each configuration file that the platform writes, by its path below ``base_dir``.
    ``python`` is the interpreter of a host that is a process of this machine or of a node that has the same programs,
    and "" for every other host. ``gpus`` is the number of a node's GPUs, ``None`` for a host of another kind.
    ``limitation`` is what this machine refuses to the host, "" for nothing.
    """

    instance_type: str
    base_dir: str
    files: Mapping[str, Any]
    variables: Mapping[str, str]
    python: str = ""
    gpus: int | None = None
    limitation: str = ""
