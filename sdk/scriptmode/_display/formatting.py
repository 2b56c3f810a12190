"""Durations, rates, numbers and curves as text. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from scriptmode._core.spec.host_values import ChannelProgress, HostActivity
from scriptmode._core.spec.inputs import LEAST_RATE
from scriptmode._core.text import messages

_T = TypeVar("_T")
_BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"


def format_channel(progress: ChannelProgress, rate: float | None = None) -> str:
    """Return a channel's progress as text: ``staged 1.2 GB of 4.0 GB (30%), 12.0 MB/s, 3 min 5 s left``.

    ``rate`` is the bytes that arrive in a second, None while unknown.
    """
    done, total = progress.done, progress.total
    text = f"{'streamed' if progress.mode == 'Pipe' else 'staged'} {messages.format_bytes(done)}"
    if total and done < total:
        text += f" of {messages.format_bytes(total)} ({done / total:.0%})"
    if progress.epoch:
        text += f", epoch {progress.epoch}"
    if rate is not None:
        text += f", {messages.format_bytes(round(rate))}/s"
        if progress.mode != "Pipe" and rate < LEAST_RATE:
            text += f" (a download of less than {messages.format_bytes(round(LEAST_RATE))}/s fails)"
    if rate and total is not None:
        text += f", {messages.format_duration((total - done) / rate)} left"
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


def sparkline(points: Sequence[float], width: int) -> str:
    """Draw points, the last one included, as a line of at most ``width`` bars."""
    step = max(1, math.ceil(len(points) / width))
    # Halves: the difference of two floats may overflow.
    halves = [point / 2 for point in points[::-step][::-1]]
    least = min(halves, default=0.0)
    span = max(halves, default=0.0) - least
    return "".join(_BARS[round((half - least) / span * (len(_BARS) - 1)) if span else 0] for half in halves)
