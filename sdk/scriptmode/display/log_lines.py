"""Show a job's log lines as they come: each with its host before it, coloured on a terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

from scriptmode import messages, terminal_text
from scriptmode.platforms.base import LOCAL_PROCESS, host_count, is_of_processes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scriptmode.platforms.base import LogEvent
    from scriptmode.source.archive import Archive

#: ANSI foreground colours, one a host in turn: cyan, yellow, green, magenta, blue.
_COLOURS = (36, 33, 32, 35, 34)


def packed(archive: Archive, uri: str, stream: TextIO | None = None) -> None:
    """Write how large a source archive is that is about to be stored, and where."""
    files = f"{archive.files:,} file{'s' if archive.files != 1 else ''}"
    _say(f"source archive: {files}, {messages.format_bytes(len(archive.data))}, at {uri}", stream)


def started(name: str, stream: TextIO | None = None) -> None:
    """Write a new job's name, by which any other process finds it."""
    _say(f"training job {name} started", stream)


def unused(request: Mapping[str, Any], stream: TextIO | None = None) -> None:
    """Write what a job says that its hosts have no use for: an image, where each is a process of this machine."""
    image = request["AlgorithmSpecification"].get("TrainingImage")
    if image and is_of_processes(request):
        _say(f"image_uri {image} is not used: hosts of {LOCAL_PROCESS!r} are processes of this machine", stream)


def ended(description: Mapping[str, Any], stream: TextIO | None = None) -> None:
    """Write how a job ended that was followed, and where its model is."""
    model = (description.get("ModelArtifacts") or {}).get("S3ModelArtifacts")
    seconds = description.get("TrainingTimeInSeconds")
    how = f"{description['TrainingJobStatus']}" + (f", {seconds:,} s of training" if seconds is not None else "")
    billable, saved = billable_seconds(description), spot_savings(description)
    if saved is not None:
        how += f", {billable:,} s billable: spot instances saved {saved:.0%}"
    elif billable not in (None, seconds):
        how += f", {billable:,} s billable on all hosts"
    _say(f"training job {description['TrainingJobName']}: {how}" + (f"; model: {model}" if model else ""), stream)


class StatusLines:
    """Writes a line for each secondary status that a job enters, once; called with the job's descriptions."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._shown = 0
        self._last = ""

    def __call__(self, description: Mapping[str, Any]) -> None:
        """Write what is new in a description."""
        transitions = description.get("SecondaryStatusTransitions", ())
        for transition in transitions[max(0, self._shown - 1) :]:
            # The service changes the message of the status that the job is in.
            line = f"{transition['Status']}: {transition.get('StatusMessage', '')}".rstrip(": ")
            if line != self._last:
                _say(f"-- {line}", self._stream)
            self._last = line
        self._shown = len(transitions)


def billable_seconds(description: Mapping[str, Any]) -> int | None:
    """Give the seconds that are paid for: the service counts one host's, a job pays for each of them."""
    seconds = description.get("BillableTimeInSeconds")
    if seconds is None:
        return None
    return int(seconds) * host_count(description)


def spot_savings(description: Mapping[str, Any]) -> float | None:
    """Give the part of a spot job's training time that is not paid for; ``None`` for other jobs, and too early."""
    seconds, billable = description.get("TrainingTimeInSeconds"), description.get("BillableTimeInSeconds")
    if not description.get("EnableManagedSpotTraining") or not seconds or billable is None:
        return None
    return 1.0 - float(billable) / float(seconds)


def _say(text: str, stream: TextIO | None) -> None:
    out = sys.stdout if stream is None else stream
    _write(f"{terminal_text.sanitize(text) if out.isatty() else text}\n", out)


def _write(text: str, out: TextIO) -> None:
    try:
        out.write(text)
    except UnicodeEncodeError:
        # A progress bar on a terminal, or in a file, of few characters: no reason to stop following a job.
        encoding = out.encoding or "ascii"
        out.write(text.encode(encoding, "backslashreplace").decode(encoding))
    out.flush()


def show(events: Iterable[LogEvent], stream: TextIO | None = None) -> None:
    """Write each event as ``host | line``; colours only where ``stream`` is a terminal, which gets no other controls.

    What goes elsewhere is written byte for byte; a long line's pieces are joined again, unless another host's line
    comes between them.
    """
    is_terminal = (sys.stdout if stream is None else stream).isatty()
    turns: dict[str, int] | None = {} if is_terminal else None
    open_host: str | None = None
    try:
        for event in events:
            message = terminal_text.render_line(event.message, colours=_may_colour()) if is_terminal else event.message
            if event.host != open_host:
                message = prefixed(event, turns, message)
                if open_host is not None:
                    message = f"\n{message}"
            open_host = event.host if event.continues else None
            # Which stream stdout is may change from line to line: while a view is in the terminal, the view takes it.
            _write(message + ("" if event.continues else "\n"), sys.stdout if stream is None else stream)
    finally:
        if open_host is not None:
            _write("\n", sys.stdout if stream is None else stream)


def prefixed(event: LogEvent, turns: dict[str, int] | None, message: str | None = None) -> str:
    """Give a line with its host before it, coloured by the host's turn.

    Not with ``turns`` None, nor where the environment wants no colours (NO_COLOR, TERM=dumb).
    ``message`` stands for the line's own.
    """
    prefix = f"{event.host} |"
    if turns is not None and _may_colour():
        turn = turns.setdefault(event.host, len(turns))
        prefix = f"\x1b[{_COLOURS[turn % len(_COLOURS)]}m{prefix}\x1b[0m"
    return f"{prefix} {event.message if message is None else message}"


def _may_colour() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
