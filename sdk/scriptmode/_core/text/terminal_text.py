"""Text for a terminal: untrusted lines without control sequences, messages in lines of its width, columns. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from scriptmode_runtime._terminal_line import is_redrawn, last_frame, overwritten, plain_text, render_line, sanitize

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

__all__ = [
    "align_columns",
    "escape_unprintable",
    "is_redrawn",
    "last_frame",
    "overwritten",
    "plain_text",
    "render_line",
    "sanitize",
    "wrap_words",
]

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


def align_columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Return a line for each row, with columns as wide as their widest cell; ``right`` are those aligned right."""
    widths = [max(map(len, column)) for column in zip(*rows)]

    def align(index: int, cell: str) -> str:
        return cell.rjust(widths[index]) if index in right else cell.ljust(widths[index])

    return ["  ".join(align(index, cell) for index, cell in enumerate(row)).rstrip() for row in rows]
