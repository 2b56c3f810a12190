"""Values as they are typed on the command line: ages, numbers, ``NAME=VALUE``, and locations."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

import click

from scriptmode import SpecError
from scriptmode._core.text.messages import did_you_mean_path

#: Seconds of the units of a duration.
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
#: Seconds of a thousand years, the largest age that leads to a date.
_MOST_SECONDS = 1000 * 365 * 86400
_FILE = "file://"


def _parse_age(text: str) -> float | None:
    """Return the seconds of a duration such as ``12h`` or ``7d``; ``None`` for another form."""
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) ?(s|m|min|h|d|w)", text)
    return float(match[1]) * _UNITS[match[2]] if match else None


def convert_age(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:  # noqa: ARG001 - click's
    """Return the seconds of a duration such as ``12h``; raise `click.BadParameter` for another form."""
    if value is None:
        return None
    seconds = _parse_age(value)
    if seconds is None:
        raise click.BadParameter(f"{value!r} is not an age; write a number and s, min, h, d or w, such as 12h or 7d")
    return seconds


def convert_time(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:  # noqa: ARG001 - as above
    """Return the time that an age or a local date and time means; raise `click.BadParameter` for another form."""
    if value is None:
        return None
    seconds = _parse_age(value)
    if seconds is not None and seconds < _MOST_SECONDS:
        return datetime.now(timezone.utc) - timedelta(seconds=seconds)
    for form in ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"):
        with suppress(ValueError):
            return datetime.strptime(value, form).astimezone()
    raise click.BadParameter(
        f"{value!r} is neither an age nor a time; write for example 30min, 1h, 7d, 2026-01-31 or 2026-01-31T12:00:00"
    )


def parse_number_or_text(text: str) -> int | float | str:
    """Return the number that a text spells exactly as Python prints it, else the text.

    A text such as ``007`` or ``1e-3`` stays a text, so that the script gets what was typed.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and repr(value) == text else text


def parse_pair(option: str, text: str, example: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``; raise `click.UsageError` for another form."""
    name, separator, value = text.partition("=")
    if not (name and separator) or name != name.strip():
        raise click.UsageError(f"{option} {text!r} does not have the form NAME=VALUE; write {option} {example}")
    return name, value


def parse_pairs(option: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """Parse the values of a repeated option; raise `click.UsageError` for a name that occurs twice."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, value = parse_pair(option, text, example)
        if name in pairs:
            # The value of an environment variable may be a secret.
            both = "" if option == "--env" else f": {pairs[name]!r} and {value!r}"
            raise click.UsageError(f"{option} {name} is given twice{both}; remove one of them")
        pairs[name] = value
    return pairs


def location_uri(what: str, text: str, *, is_local: bool, exists: bool = False) -> str:
    """Return a remote URI unchanged, and a path of this machine as the URI of its absolute path.

    ``what`` names the option in errors. Raises `SpecError` for a location that the platform cannot use, and with
    ``exists`` for a path that does not exist.
    """
    path = text.removeprefix(_FILE)
    if "://" in path:
        return text
    if found := re.match("(s3|file)(?::|//)[:/]*", path):
        scheme, rest = found[1], path[found.end() :]
        step = f"write {scheme}://{'/' * (scheme == 'file')}{rest}, or ./{path} for a path"
        raise SpecError(f"{what} {text!r} is no URI", advice=step)
    if not is_local or not path:
        needed = "an s3:// URI" + (", or a directory of this machine" if is_local else ", which Amazon SageMaker needs")
        raise SpecError(f"{what} {text!r} is not {needed}", advice="write s3://bucket/prefix")
    absolute = Path(os.path.expanduser(path)).absolute()  # noqa: PTH111 - it raises no error
    if exists and not os.path.lexists(absolute):
        step = did_you_mean_path(absolute) or "correct the path, or create it"
        raise SpecError(f"{what} {text!r}: there is no file or directory {str(absolute)!r}", advice=step)
    return f"{_FILE}{absolute}"
