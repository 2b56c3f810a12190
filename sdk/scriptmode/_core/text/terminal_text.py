"""Text for a terminal: messages in lines of its width, without unprintable characters, columns. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Sequence

#: A command in a message: the text from a colon up to the next mark.
_COMMAND = re.compile(r"(?<=: )scriptmode [^.;,:()]*[^.;,:() ]")


def wrap_words(text: str, width: int) -> str:
    """Return a message in lines of at most ``width`` columns; indented lines are unchanged.

    Neither a word nor a command of scriptmode is divided, so that it can be copied: a terminal divides one that is
    longer than a line.
    """
    import textwrap

    return "\n".join(
        line
        if len(line) < width or line[:1].isspace()
        else textwrap.fill(
            _COMMAND.sub(lambda command: command[0].replace(" ", "\0"), line),
            width - 1,
            break_long_words=False,
            break_on_hyphens=False,
        ).replace("\0", " ")
        for line in text.split("\n")
    )


def escape_unprintable(text: str) -> str:
    """Escape unprintable characters, which a terminal would interpret as control sequences."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else json.dumps(character)[1:-1] for character in text)


def pad_columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[list[str]]:
    """Return the columns of rows, each with cells as wide as its widest; ``right`` are those aligned right."""
    columns = []
    for index, cells in enumerate(zip(*rows)):
        # A method for all cells: there may be thousands of rows.
        pad, width = str.rjust if index in right else str.ljust, max(map(len, cells))
        columns.append([pad(cell, width) for cell in cells])
    return columns


def align_columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Return a line for each row, with columns as `pad_columns` returns them."""
    return ["  ".join(row).rstrip() for row in zip(*pad_columns(rows, right))]
