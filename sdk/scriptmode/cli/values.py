"""Values as they are typed: numbers, texts, JSON."""

from __future__ import annotations

import json


def parse_number_or_text(text: str) -> int | float | str:
    """Give a number for a text that is the plain spelling of one, else the text: the script is given what was typed."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and repr(value) == text else text
