"""Parts of messages that several modules share: problems, suggestions, sizes, durations, commands; and warnings."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from scriptmode.errors import ScriptmodeError, SpecError

_ROOT = Path(__file__).parents[2]
#: The packages of this library, and its pytest plugin.
_OWN = tuple(f"{_ROOT}{end}" for end in ("/", "_cli/", "_kubernetes/", "_local/", "_serve/", "_slurm/", "_pytest.py"))
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
#: Seconds below which a duration has a decimal.
_SHORT = 10


class Problem(NamedTuple):
    """Why something cannot be done, the next step, and the argument that is wrong; as text ``why; step``."""

    text: str
    advice: str = ""
    argument: str = ""

    def __str__(self) -> str:
        return f"{self.text}; {self.advice}" if self.advice else self.text


def problem_of(error: Exception) -> Problem:
    """Return an error's text, advice and argument."""
    if isinstance(error, ScriptmodeError):
        return Problem(error.message, error.advice or "", error.argument or "")
    return Problem(str(error))


def validate_keys(
    owner: str,
    keys: Iterable[object],
    known: Collection[str],
    *,
    argument: str | None = None,
    error: type[SpecError] = SpecError,
) -> None:
    """Raise ``error`` for the first of ``keys`` that is not known; ``argument`` is the one that has them."""
    for key in keys:
        if key not in known:
            raise error(f"{owner} has no key {key!r}", did_you_mean(str(key), known), argument=argument)


def did_you_mean(word: str, known: Iterable[str], *, most: int = 15) -> str:
    """Return advice for an unknown word: ``did you mean 'x'?``, else to use one of the known words.

    It is "" where no word is similar and none, or more than ``most``, are known.
    """
    import difflib

    words = sorted(known)
    close = [name for name in words if name.lower() == word.lower()] or difflib.get_close_matches(word, words, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"use {'one of ' if len(words) > 1 else ''}{', '.join(words)}" if 0 < len(words) <= most else ""


def did_you_mean_path(path: Path) -> str:
    """Return `did_you_mean` for a path that does not exist, of the names in its directory."""
    # A name may be too long, a directory unreadable.
    with suppress(OSError):
        return did_you_mean(path.name, {entry.name for entry in path.parent.iterdir()} - {path.name}, most=0)
    return ""


def format_bytes(count: int) -> str:
    """Return a number of bytes in the largest decimal unit of which there is at least one: ``1.5 MB``, ``12 bytes``."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def still_running(job_name: str, queue_position: int = 0) -> str:
    """Return what to do about a training job that runs, or waits in its queue, while nothing follows it any more."""
    what = f"is number {queue_position} in the queue, and starts by itself" if queue_position else "is still running"
    return f"Training job {job_name} {what}. Follow it again: scriptmode logs -f {job_name}"


def format_duration(seconds: float) -> str:
    """Return a duration as text: ``0.4 s``, ``42 s``, ``3 min 5 s``, ``2 h 10 min``, ``3 d 4 h``."""
    seconds = max(0.0, seconds)
    if seconds < _SHORT:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    for size, unit, below, smaller in ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "min"), (_MINUTE, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def pluralize(count: int, noun: str) -> str:
    """Return a number with its noun: ``1 host``, ``12 hosts``, ``1,000 lines``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this library, however deep."""
    frame, level = inspect.currentframe(), 1
    while frame and frame.f_back and frame.f_code.co_filename.startswith(_OWN):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
