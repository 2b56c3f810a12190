"""A job's log as plain lines: each with its host as prefix, in colours on a terminal; and messages about the job."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from scriptmode._core.platforms.registry import Platform
from scriptmode._core.spec.job_description import JobDescription
from scriptmode._core.spec.service_values import CHECKPOINTS_SHARED, LogEvent
from scriptmode._core.text import messages
from scriptmode._core.text.colours import colours_enabled
from scriptmode.errors import ScriptmodeError
from scriptmode_runtime import _terminal_line as terminal_line

#: ANSI foreground colours, one a host in turn: cyan, yellow, green, magenta, blue.
_COLOURS = (36, 33, 32, 35, 34)


def warn(warnings: Iterable[str], stream: TextIO | None = None) -> None:
    """Write what was found before a job starts, or as it did, a line each."""
    for text in warnings:
        write_line(text, stream)


def describe_events(name: str, platform: Platform, *, at_start: bool = False) -> list[str]:
    """Return the events of a job's start, or all others, as texts; none where they cannot be read."""
    with suppress(ScriptmodeError):
        return [str(event) for event in platform.events(name) if (event.reason == CHECKPOINTS_SHARED) == at_start]
    return []


def ended(description: JobDescription) -> None:
    """Write the outcome of a job that was followed, and the location of its model."""
    seconds, billable, saved = description.training_seconds, description.billable_seconds, description.spot_savings
    how = description.status + (f", {seconds:,} s of training" if seconds is not None else "")
    is_billed = not description.job.resources.host_kind.has_local_jobs
    if is_billed and saved is not None:
        how += f", {billable:,} s billable: spot instances saved {saved:.0%}"
    elif is_billed and billable not in (None, seconds):
        how += f", {billable:,} s billable on all hosts"
    model = describe_model(description)
    write_line(f"training job {description.name}: {how}{model and f'; model: {model}'}")


def describe_model(description: JobDescription) -> str:
    """Return the URI of a job's model; "" without one, ``empty`` for an archive on this machine that is known to be."""
    uri = description.artifact_uri
    path = Path(uri[len("file://") :])
    with suppress(OSError):
        if uri.startswith("file://") and path.is_file():
            import tarfile

            with suppress(EOFError, tarfile.TarError), tarfile.open(path, "r:gz") as archive:
                return uri if archive.next() else "empty"
    return uri


def left_running(name: str, queue_position: int) -> None:
    """Write how to follow a job again that nothing follows any more."""
    text = how_to_follow_again(name, queue_position)
    if sys.stderr.isatty():
        from scriptmode._core.text.terminal_text import wrap_words

        text = wrap_words(text, shutil.get_terminal_size().columns)
    _write(f"\n{text}\n", sys.stderr)


def how_to_follow_again(name: str, queue_position: int) -> str:
    """Return how to follow a job again that nothing follows any more, and how to stop it."""
    call = f", or in Python TrainingJob.attach({name!r}).follow()" if hasattr(sys, "ps1") else ""
    return f"{messages.still_running(name, queue_position)}{call}. Stop it: scriptmode stop {name}"


class StatusLines:
    """Writer of one line for each secondary status of a job; it is called with the job's descriptions."""

    def __init__(self) -> None:
        self._shown = 0
        self._last = ""

    def __call__(self, description: JobDescription) -> None:
        """Write the statuses that are new in a description."""
        transitions = description.transitions
        for transition in transitions[max(0, self._shown - 1) :]:
            # The service changes the message of the status that the job is in.
            line = f"{transition.status}: {transition.message}".rstrip(": ")
            # Once a status has passed, its message lacks what a scheduler said of it meanwhile.
            if not self._last.startswith(line):
                write_line(f"-- {line}")
                self._last = line
        self._shown = len(transitions)


def write_line(text: str, stream: TextIO | None = None) -> None:
    """Write a message as one line."""
    out = sys.stdout if stream is None else stream
    _write(f"{terminal_line.sanitize(text) if out.isatty() else text}\n", out)


def _write(text: str, out: TextIO) -> None:
    try:
        out.write(text)
    except UnicodeEncodeError:
        # The output's encoding lacks a character, such as one of a progress bar: that must not end the following.
        encoding = out.encoding or "ascii"
        out.write(text.encode(encoding, "backslashreplace").decode(encoding))
    out.flush()


def show(events: Iterable[LogEvent], *, timestamps: bool = False) -> None:
    """Write each event as ``host | line``; a terminal gets colours, and no other control sequences.

    ``timestamps``: after the local time when the service had the line, to the millisecond.

    Other outputs get a line with frames as a terminal would show it, and each other line unchanged; the pieces of a
    long line are joined, unless another host's line comes between them.
    """
    is_terminal, has_colours = sys.stdout.isatty(), colours_enabled(sys.stdout)
    turns: dict[str, int] | None = {} if has_colours else None
    open_host: str | None = None
    try:
        for event in events:
            message = event.message
            if is_terminal or terminal_line.is_redrawn(message.rstrip("\r")):
                message = terminal_line.render_line(message, colours=has_colours)
            if event.host != open_host:
                when = event.time if timestamps else None
                moment = f"{when.astimezone().isoformat('T', 'milliseconds')} " if when else ""
                message = ("" if open_host is None else "\n") + moment + prefixed(event.host, turns, message)
            open_host = event.host if event.continues else None
            # sys.stdout may change from line to line: a live view in the terminal replaces it.
            _write(message + ("" if event.continues else "\n"), sys.stdout)
    finally:
        if open_host is not None:
            _write("\n", sys.stdout)


def prefixed(host: str, turns: dict[str, int] | None, text: str) -> str:
    """Return a line with its host as prefix, in a colour for each host; without colours if ``turns`` is None."""
    prefix = f"{host} |"
    if turns is not None:
        turn = turns.setdefault(host, len(turns))
        prefix = f"\x1b[{_COLOURS[turn % len(_COLOURS)]}m{prefix}\x1b[0m"
    return f"{prefix} {text}"
