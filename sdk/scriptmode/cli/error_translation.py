"""Errors in the command's own words: which option says what an argument of the library's says."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scriptmode import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


#: What the library says of its own arguments, and what says the same here.
_WORDS = {
    "set AWS_DEFAULT_REGION or": "say --region, set AWS_DEFAULT_REGION or",
    'metric_definitions=[{"Name": "loss", "Regex": "loss=([0-9.]+)"}]': "--metric 'loss=loss=([0-9.]+)'",
}


def translate_advice(text: str) -> str:
    """Give an error of the library's with its advice in this command's words."""
    for said, here in _WORDS.items():
        text = text.replace(said, here)
    return text


@contextmanager
def translate_errors_to_options(flags: Mapping[str, str]) -> Iterator[None]:
    """Add to a `SpecError` that names arguments the options that give them; ``flags`` has them by argument."""
    try:
        yield
    except SpecError as error:
        named = [flag for argument, flag in flags.items() if _names(str(error), argument)]
        if not named:
            raise
        raise type(error)(f"{error} ({', '.join(dict.fromkeys(named))})") from error


def _names(text: str, argument: str) -> bool:
    """Say whether a text means an argument: one word may be any word, but for one that a text is about."""
    if "_" in argument:
        return re.search(rf"(?<![\w'\"./-]){argument}(?![\w'\"./-])", text) is not None
    return re.match(rf"{argument}(\[| is | has )", text) is not None
