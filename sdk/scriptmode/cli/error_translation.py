"""Errors of the library in terms of the command line: the option that stands for each argument."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scriptmode import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


#: Advice in the library's errors, and the same advice for the command line.
_ADVICE = {
    "set AWS_DEFAULT_REGION or": "add --region, set AWS_DEFAULT_REGION or",
    'metric_definitions=[{"Name": "loss", "Regex": "loss=([0-9.]+)"}]': "--metric 'loss=loss=([0-9.]+)'",
}


def translate_advice(text: str) -> str:
    """Return an error message of the library with its advice translated to options."""
    for advice, translation in _ADVICE.items():
        text = text.replace(advice, translation)
    return text


@contextmanager
def translate_errors_to_options(options: Mapping[str, str]) -> Iterator[None]:
    """Append to a `SpecError` the options that stand for the arguments that it names; ``options`` is by argument."""
    try:
        yield
    except SpecError as error:
        named = [option for argument, option in options.items() if _names(str(error), argument)]
        if not named:
            raise
        raise type(error)(f"{error} ({', '.join(dict.fromkeys(named))})") from error


def _names(text: str, argument: str) -> bool:
    """Return whether a message names an argument.

    A name without an underscore may be an ordinary word: it counts only as the subject at the start of the message.
    """
    if "_" in argument:
        return re.search(rf"(?<![\w'\"./-]){argument}(?![\w'\"./-])", text) is not None
    return re.match(rf"{argument}(\[| is | has )", text) is not None
