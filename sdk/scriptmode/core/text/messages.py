"""Parts of messages that several modules share: problems, suggestions, sizes, durations, commands."""

from __future__ import annotations

import functools
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from scriptmode.errors import ScriptmodeError, SpecError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

_T = TypeVar("_T")
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


def suggest_fields(kind: type[_T]) -> type[_T]:
    """Add to a dataclass the suggestion of a field for a misspelled keyword, to Python's ``TypeError``."""
    create: Any = kind.__init__
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]

    @functools.wraps(create)
    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807 - replaces the dataclass's own
        for name in named.keys() - known:
            raise TypeError(str(Problem(f"{kind.__name__} has no argument {name!r}", did_you_mean(name, known))))
        create(self, *values, **named)

    kind.__init__ = __init__  # type: ignore[method-assign]
    return kind


def did_you_mean(word: str, known: Iterable[str], *, most: int = 15) -> str:
    """Return advice for an unknown word: ``did you mean 'x'?``, else to use one of the known words.

    It is "" where no word is similar and none, or more than ``most``, are known.
    """
    words = sorted(known)
    if similar := suggest_similar(word, words):
        return similar
    return f"use {'one of ' if len(words) > 1 else ''}{', '.join(words)}" if 0 < len(words) <= most else ""


def suggest_similar(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the most similar known word as ``did you mean 'x'?``, or "" where none reaches ``cutoff`` (0 to 1).

    Preferred are the word in other cases, and one with two letters exchanged: us-esat-1 is us-east-1 rather than
    us-west-1.
    """
    import difflib

    known = list(known)
    close = [each for each in known if each.lower() == word.lower()]
    close = close or [each for each in known if _has_letters_exchanged(each, word)]
    close = close or difflib.get_close_matches(word, known, n=1, cutoff=cutoff)
    return f"did you mean {close[0]!r}?" if close else ""


def _has_letters_exchanged(one: str, other: str) -> bool:
    """Return whether two words differ by two neighbouring letters in the other order; digits are not letters."""
    differing = [index for index, (a, b) in enumerate(zip(one, other)) if a != b]
    if len(one) != len(other) or len(differing) != 2 or differing[1] != differing[0] + 1:  # noqa: PLR2004 - a pair
        return False
    pair = slice(differing[0], differing[1] + 1)
    return one[pair] == other[pair][::-1] and one[pair].isalpha()


def correct_scheme(uri: str) -> str:
    """Return what to write instead of a URI whose scheme has capitals, ``write 's3://bucket'``; "" for another text."""
    scheme, separator, rest = uri.partition("://")
    is_known = scheme != scheme.lower() and scheme.lower() in ("s3", "file", "https")
    return f"write {scheme.lower() + separator + rest!r}" if is_known else ""


def did_you_mean_path(path: Path) -> str:
    """Return a suggestion for a path that does not exist: ``did you mean 'x'?``, or "" where no name is similar.

    The first part of the path that does not exist is compared with the names in its parent directory.
    """
    import difflib

    for candidate in (path, *path.parents):
        # A name may be too long, a directory unreadable.
        with suppress(OSError):
            if not candidate.parent.is_dir():
                continue
            # A suffix in common makes short names of no relation similar: wrds.py, syn.py.
            stems = (each for each in candidate.parent.iterdir() if suggest_similar(candidate.stem, (each.stem,)))
            close = difflib.get_close_matches(candidate.name, sorted(each.name for each in stems), n=1)
            if not close or candidate.exists():
                return ""
            meant = close[0] if candidate == path else str(candidate.with_name(close[0]))
            return f"did you mean {meant!r}?"
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
