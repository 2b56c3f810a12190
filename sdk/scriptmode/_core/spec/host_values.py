"""The values that a platform returns of a job's hosts: as planned, what they do, their channels' progress. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scriptmode._core.text.messages import format_duration

#: Seconds without output after which a host is called silent.
_SILENT_SECONDS = 10.0


@dataclass(frozen=True)
class ChannelProgress:
    """Progress of a channel: bytes staged before training in File mode, or streamed to all its hosts in Pipe mode.

    ``done`` and ``total`` are bytes; ``total`` is ``None`` where it is unknown. ``epoch`` counts from 0.
    """

    channel: str
    mode: str
    done: int
    total: int | None = None
    epoch: int | None = None


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
        place: Where a cluster runs it, as its tools know it: ``Slurm job 17, partition gpu, node1``. It stays
            known, and is all that is known of a job that has ended.

    ``None`` is unknown, also for a host that does not run yet or has ended.
    """

    line: str = ""
    silent_seconds: float | None = None
    cpu_percent: float | None = None
    memory_bytes: int | None = None
    gpu_percent: float | None = None
    gpu_memory_bytes: int | None = None
    place: str = ""

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
