"""Durations, rates and numbers as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from scriptmode.core.spec.inputs import LEAST_RATE
from scriptmode.core.spec.service_values import HostActivity
from scriptmode.core.text import messages
from scriptmode.display.snapshot import ChannelStatus, HostStatus

_T = TypeVar("_T")


def format_amount(done: int, total: int | None) -> str:
    """Return an amount of data as text: ``1.2 GB``, ``1.2 GB of 4.0 GB``."""
    if total is None:
        return messages.format_bytes(done)
    whole = messages.format_bytes(total)
    return whole if done >= total else f"{messages.format_bytes(done)} of {whole}"


def format_channel(status: ChannelStatus) -> str:
    """Return a channel's progress as text: ``streamed 1.2 GB of 4.0 GB (30%), 12.0 MB/s, 3 min 5 s left``."""
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


def format_usage(activity: HostActivity) -> str:
    """Return the resources that a host uses as text: ``CPU 198%, 1.3 GB, GPU 87%, 10.1 GB``; "" while unknown."""
    cpu, gpu = activity.cpu_percent, activity.gpu_percent
    parts = (
        None if cpu is None else f"CPU {cpu:.0f}%",
        None if activity.memory_bytes is None else messages.format_bytes(activity.memory_bytes),
        None if gpu is None else f"GPU {gpu:.0f}%",
        None if activity.gpu_memory_bytes is None else messages.format_bytes(activity.gpu_memory_bytes),
    )
    return ", ".join(filter(None, parts))


def format_host(host: HostStatus) -> str:
    """Return what a host does as text: ``chief, worker · CPU 198%, 1.3 GB · no output for 12 s``; "" while unknown."""
    facts = (host.role, format_usage(host.activity), host.activity.silence)
    return " \u00b7 ".join(filter(None, facts))


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


def cut(items: Sequence[_T], rows: int, name: str) -> tuple[Sequence[_T], str]:
    """Return the items that fit in ``rows``, and the text of a last row that counts the rest; "" if all fit."""
    if len(items) <= rows:
        return items, ""
    shown = items[: max(0, rows - 1)]
    left = len(items) - len(shown)
    return shown, f"and {left} more {name}" if shown else f"{left} {name}"
