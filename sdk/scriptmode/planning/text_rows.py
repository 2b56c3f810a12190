"""Rows of a plan's text, which are wrapped to a width at the end. Pure."""

from __future__ import annotations

import json
import textwrap
from typing import NamedTuple


class Row(NamedTuple):
    """A text with the indentation of its first and its other lines; what needs more than ``most`` lines is cut."""

    text: str
    first: str = ""
    others: str = "    "
    most: int | None = None

    def lines(self, width: int) -> list[str]:
        """Return the lines, of ``width`` characters where no word is longer: a URI is to be copied."""
        return textwrap.wrap(
            escape(self.text),
            width,
            initial_indent=self.first,
            subsequent_indent=self.others,
            break_on_hyphens=False,
            break_long_words=False,
            max_lines=self.most,
            placeholder=" ...",
        ) or [""]


def escape(text: str) -> str:
    """Escape characters that are not printable, such as line ends in a name: a terminal would interpret them."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
