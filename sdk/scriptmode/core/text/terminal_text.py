"""Untrusted text for a terminal: colours are kept, all other control sequences are removed or interpreted. Pure."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

#: Control sequences (ECMA-48): CSI, strings such as titles (OSC, DCS ...), two-byte escapes; then single controls, the
#: marks that change the direction of writing; the rest is text.
_TOKENS = (
    r"\x1b\[(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|(?P<string>\x1b[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?)"
    r"|(?P<escape>\x1b[ -/]*[0-~]?)"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069])"
    r"|(?P<text>[^\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+)"
)
_COLOUR = re.compile(r"[0-9;:]*")
#: A command in a message: the text from a colon up to the next mark.
_COMMAND = re.compile(r"(?<=: )scriptmode [^.;,:()]*[^.;,:() ]")
_TAB = 8
#: Number of styles (colour, background, bold ...) in force at once.
_MOST_STYLES = 8
#: Number of characters interpreted of a line: a progress bar that was redrawn for days is one line.
_MOST_CHARACTERS = 64 * 1024


@cache
def _tokens() -> re.Pattern[str]:
    # Compiled on first use: that takes longer than importing this module.
    return re.compile(_TOKENS)


class _Row:
    """The cells of one line of a terminal, with their colours, and the cursor."""

    def __init__(self) -> None:
        self._cells: list[tuple[str, str]] = []
        self._cursor = 0
        self._styles: list[str] = []
        self._colours = ""

    def write(self, text: str) -> None:
        end = self._cursor + len(text)
        if self._cursor > len(self._cells):
            self._cells += [(" ", "")] * (self._cursor - len(self._cells))
        self._cells[self._cursor : end] = [(character, self._colours) for character in text]
        self._cursor = end

    def control(self, character: str) -> None:
        if character == "\r":
            self._cursor = 0
        elif character == "\b":
            self._cursor = max(0, self._cursor - 1)
        elif character == "\t":
            self.write(" " * (_TAB - self._cursor % _TAB))

    def sequence(self, parameters: str, final: str) -> None:
        if final == "m" and _COLOUR.fullmatch(parameters):
            is_reset = parameters.strip("0") == ""
            self._styles = [] if is_reset else [*self._styles[1 - _MOST_STYLES :], f"\x1b[{parameters}m"]
            self._colours = "".join(self._styles)
        elif final == "K" and parameters in ("", "0"):
            del self._cells[self._cursor :]
        elif final == "K" and parameters == "2":
            self._cells.clear()

    def rendered(self, *, colours: bool) -> str:
        if not colours:
            return "".join(character for character, _ in self._cells)
        parts, current = [], ""
        for character, wanted in self._cells:
            if wanted != current:
                parts.append(f"\x1b[0m{wanted}" if current else wanted)
                current = wanted
            parts.append(character)
        if current:
            parts.append("\x1b[0m")
        return "".join(parts)


def sanitize(text: str) -> str:
    """Return lines without control sequences, except colours, line ends and tabs."""
    if text.isprintable():
        return text
    return "\n".join(line if line.isprintable() else _tokens().sub(_kept, line) for line in text.split("\n"))


def _kept(token: re.Match[str]) -> str:
    is_colour = token.lastgroup == "final" and token["final"] == "m" and _COLOUR.fullmatch(token["parameters"])
    return token.group() if is_colour else _text(token)


def _text(token: re.Match[str]) -> str:
    return token.group() if token.lastgroup == "text" or token.group() == "\t" else ""


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


def render_line(line: str, *, colours: bool = False) -> str:
    """Return what a terminal would show after a line was written; of a progress bar its last state.

    With ``colours``, colours are control sequences that are reset at the end of the line; all other control sequences
    are removed. Of a line of more than 64 Ki characters with carriage returns or backspaces the end is interpreted.
    """
    if line.isprintable():
        return line
    if len(line) > _MOST_CHARACTERS and "\r" not in line and "\b" not in line:
        text = sanitize(line)
        return f"{text}\x1b[0m" if colours else _tokens().sub(_text, text)
    if len(line) > _MOST_CHARACTERS:
        # From the first redrawing in it, if any.
        end = line[-_MOST_CHARACTERS:]
        line = end[end.find("\r") + 1 :]
    row = _Row()
    for token in _tokens().finditer(line):
        kind = token.lastgroup
        if kind == "text":
            row.write(token.group())
        elif kind == "control":
            row.control(token.group())
        elif kind == "final":
            row.sequence(token["parameters"], token["final"])
    return row.rendered(colours=colours)


def escape_unprintable(text: str) -> str:
    """Escape unprintable characters, which a terminal would interpret as control sequences."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def align_columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Return a line for each row, with columns as wide as their widest cell; ``right`` are those aligned right."""
    widths = [max(map(len, column)) for column in zip(*rows)]

    def align(index: int, cell: str) -> str:
        return cell.rjust(widths[index]) if index in right else cell.ljust(widths[index])

    return ["  ".join(align(index, cell) for index, cell in enumerate(row)).rstrip() for row in rows]
