"""Show a job's log lines as they come: each with its host before it, coloured on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scriptmode.platforms import LogEvent
    from scriptmode.source import Archive

#: ANSI foreground colours, one a host in turn: cyan, yellow, green, magenta, blue.
_COLOURS = (36, 33, 32, 35, 34)


def packed(archive: Archive, uri: str, stream: TextIO | None = None) -> None:
    """Write how large a source archive is that is about to be stored, and where."""
    files = f"{archive.files:,} file{'s' if archive.files != 1 else ''}"
    _say(f"source archive: {files}, {_size(len(archive.data))}, at {uri}", stream)


def started(name: str, stream: TextIO | None = None) -> None:
    """Write a new job's name, by which any other process finds it."""
    _say(f"training job {name} started", stream)


def ended(description: Mapping[str, Any], stream: TextIO | None = None) -> None:
    """Write how a job ended that was followed, and where its model is."""
    model = (description.get("ModelArtifacts") or {}).get("S3ModelArtifacts")
    seconds = description.get("TrainingTimeInSeconds")
    how = f"{description['TrainingJobStatus']}" + (f", {seconds} s of training" if seconds is not None else "")
    _say(f"training job {description['TrainingJobName']}: {how}" + (f"; model: {model}" if model else ""), stream)


def _size(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _say(text: str, stream: TextIO | None) -> None:
    out = sys.stdout if stream is None else stream
    out.write(f"{text}\n")
    out.flush()


def show(events: Iterable[LogEvent], stream: TextIO | None = None) -> None:
    """Write each event as ``host | line``; colours only where ``stream`` is a terminal."""
    out = sys.stdout if stream is None else stream
    coloured = out.isatty()
    seen: dict[str, int] = {}
    for event in events:
        turn = seen.setdefault(event.host, len(seen))
        prefix = f"{event.host} |"
        if coloured:
            prefix = f"\x1b[{_COLOURS[turn % len(_COLOURS)]}m{prefix}\x1b[0m"
        out.write(f"{prefix} {event.message}\n")
        out.flush()
