"""Values as they are typed: numbers, texts, JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable


def parse_number_or_text(text: str) -> int | float | str:
    """Give a number for a text that is the plain spelling of one, else the text: the script is given what was typed."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and repr(value) == text else text


def parse_pair(flag: str, text: str, example: str) -> tuple[str, str]:
    """Read ``NAME=VALUE``; raise `click.UsageError` for another form."""
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise click.UsageError(
            f"{flag} {text!r} has no NAME=VALUE; write {flag} {example}", click.get_current_context(silent=True)
        )
    return name, value


def parse_pairs(flag: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """Read what an option that may be repeated was given; raise `click.UsageError` for a name that is there twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, value = parse_pair(flag, text, example)
        if name in found:
            # A variable of the environment may be a secret.
            both = "" if flag == "--env" else f": {found[name]!r} and {value!r}"
            raise click.UsageError(
                f"{flag} {name} is there twice{both}; keep one", click.get_current_context(silent=True)
            )
        found[name] = value
    return found
