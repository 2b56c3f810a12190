"""Errors of the library in terms of the command line: the option that stands for each argument."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from scriptmode import ScriptmodeError
from scriptmode.errors import with_suffix

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


#: Options that stand for what errors of every kind name.
_COMMON_OPTIONS = {"region": "--region", "profile": "--profile", "metric_definitions": "--metric NAME=REGEX"}


@contextmanager
def translate_errors_to_options(options: Mapping[str, str]) -> Iterator[None]:
    """Append to an error the option that stands for its argument; ``options`` is by argument."""
    try:
        yield
    except ScriptmodeError as error:
        option = options.get(error.argument or "")
        # `error_text` appends the option of the others.
        if option is None or error.argument in _COMMON_OPTIONS:
            raise
        raise with_suffix(error, f"({option})") from error


def error_text(error: ScriptmodeError) -> str:
    """Return the text of an error, with the option that stands for its argument if each command has it."""
    option = _COMMON_OPTIONS.get(error.argument or "")
    return f"{error} ({option})" if option else str(error)
