"""Durations, rates and numbers as text. Pure."""

from __future__ import annotations

from scriptmode.core.spec.inputs import LEAST_RATE
from scriptmode.core.spec.service_values import HostActivity
from scriptmode.core.text import messages
from scriptmode.display.snapshot import ChannelStatus


def format_amount(done: int, total: int | None) -> str:
    """Return an amount of data as text: ``1.2 GB``, ``1.2 of 4.0 GB``, ``800.0 kB of 4.0 GB``."""
    if total is None:
        return messages.format_bytes(done)
    if done >= total:
        return messages.format_bytes(total)
    some, whole = messages.format_bytes(done), messages.format_bytes(total)
    if some.rpartition(" ")[2] == whole.rpartition(" ")[2]:
        some = some.rpartition(" ")[0]
    return f"{some} of {whole}"


def format_channel(status: ChannelStatus) -> str:
    """Return a channel's progress as text: ``streamed 1.2 of 4.0 GB (30%), 12.0 MB/s, 3 min 5 s left``."""
    progress = status.progress
    kind = "streamed" if progress.mode == "Pipe" else "staged"
    text = f"{kind} {format_amount(progress.done, progress.total)}"
    if progress.total and progress.done < progress.total:
        text += f" ({progress.done / progress.total:.0%})"
    if progress.epoch:
        text += f", epoch {progress.epoch}"
    if status.rate is not None:
        text += f", {format_rate(status.rate)}"
        if progress.mode != "Pipe" and status.rate < LEAST_RATE:
            text += f" (a download of less than {format_rate(LEAST_RATE)} fails)"
    if status.left is not None:
        text += f", {messages.format_duration(status.left)} left"
    return text


def usage_cells(activity: HostActivity) -> tuple[str, str, str, str]:
    """Return the resources of a host as cells: ``CPU 198%``, ``1.3 GB``, ``GPU 87%``, ``10.1 GB``; "" if unknown."""
    cpu, gpu = activity.cpu_percent, activity.gpu_percent
    memory, gpu_memory = activity.memory_bytes, activity.gpu_memory_bytes
    return (
        "" if cpu is None else f"CPU {cpu:.0f}%",
        "" if memory is None else messages.format_bytes(memory),
        "" if gpu is None else f"GPU {gpu:.0f}%",
        "" if gpu_memory is None else messages.format_bytes(gpu_memory),
    )


def format_usage(activity: HostActivity) -> str:
    """Return the resources that a host uses as text: ``CPU 198%, 1.3 GB, GPU 87%, 10.1 GB``; "" while unknown."""
    return ", ".join(filter(None, usage_cells(activity)))


def format_rate(bytes_per_second: float) -> str:
    """Return a rate as text: ``12.0 MB/s``."""
    return f"{messages.format_bytes(round(bytes_per_second))}/s"


def format_number(value: float) -> str:
    """Return a metric's value in few digits: ``0.1234``, ``1.5e-07``, ``12,000``."""
    if value.is_integer() and abs(value) < 10**9:
        return f"{int(value):,}"
    return f"{value:.4g}"


def truncate(text: str, width: int) -> str:
    """Truncate a text to ``width`` characters, the last of them an ellipsis."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "\u2026"


def visible_count(count: int, rows: int) -> int:
    """Return how many of ``count`` items fit in ``rows``; if not all do, the last row holds the number of the rest."""
    return count if count <= rows else max(0, rows - 1)
