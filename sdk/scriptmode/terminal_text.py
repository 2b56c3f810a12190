"""What a terminal would show of a line that anybody wrote: its colours, and nothing else that it would obey. Pure."""

from __future__ import annotations

import re
from functools import cache

#: Control sequences (ECMA-48): CSI, strings such as titles (OSC, DCS ...), two-byte escapes; then single controls, the
#: marks that turn the direction of writing, and what is left: text.
_TOKENS = (
    r"\x1b\[(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|(?P<string>\x1b[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?)"
    r"|(?P<escape>\x1b[ -/]*[0-~]?)"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069])"
    r"|(?P<text>[^\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+)"
)
_COLOUR = re.compile(r"[0-9;:]*")
_TAB = 8
#: Colour, background, bold and the like: so many are in force at once.
_MOST_STYLES = 8
#: Characters: a progress bar that was drawn anew for days is one line.
_MOST_CHARACTERS = 64 * 1024


@cache
def _tokens() -> re.Pattern[str]:
    # Compiled when it is needed: that takes longer than importing this module.
    return re.compile(_TOKENS)


class _Row:
    """The cells of one line of a terminal, with the colours they were written in."""

    def __init__(self) -> None:
        self._cells: list[tuple[str, str]] = []
        self._place = 0
        self._set: list[str] = []
        self._colours = ""

    def write(self, text: str) -> None:
        end = self._place + len(text)
        if self._place > len(self._cells):
            self._cells += [(" ", "")] * (self._place - len(self._cells))
        self._cells[self._place : end] = [(character, self._colours) for character in text]
        self._place = end

    def control(self, character: str) -> None:
        if character == "\r":
            self._place = 0
        elif character == "\b":
            self._place = max(0, self._place - 1)
        elif character == "\t":
            self.write(" " * (_TAB - self._place % _TAB))

    def sequence(self, parameters: str, final: str) -> None:
        if final == "m" and _COLOUR.fullmatch(parameters):
            is_reset = parameters.strip("0") == ""
            self._set = [] if is_reset else [*self._set[1 - _MOST_STYLES :], f"\x1b[{parameters}m"]
            self._colours = "".join(self._set)
        elif final == "K" and parameters in ("", "0"):
            del self._cells[self._place :]
        elif final == "K" and parameters == "2":
            self._cells.clear()

    def shown(self, *, colours: bool) -> str:
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
    """Return lines without what a terminal would obey: colours, line ends and tabs alone are left of the controls."""
    if text.isprintable():
        return text
    return "\n".join(line if line.isprintable() else _tokens().sub(_kept, line) for line in text.split("\n"))


def _kept(token: re.Match[str]) -> str:
    if token.lastgroup == "text":
        return token.group()
    if token.lastgroup == "control":
        return "\t" if token.group() == "\t" else ""
    is_colour = token.lastgroup == "final" and token["final"] == "m" and _COLOUR.fullmatch(token["parameters"])
    return token.group() if is_colour else ""


def _text(token: re.Match[str]) -> str:
    return token.group() if token.lastgroup == "text" or token.group() == "\t" else ""


def render_line(line: str, *, colours: bool = False) -> str:
    """Give what a terminal would show of a line last, a progress bar as it stood at the end.

    With ``colours`` as control sequences that end with the line; everything else that a terminal obeys is left out. Of
    more than 64 Ki characters that were drawn anew, by carriage returns or backspaces, the end is given.
    """
    if line.isprintable():
        return line
    if len(line) > _MOST_CHARACTERS and "\r" not in line and "\b" not in line:
        text = sanitize(line)
        return f"{text}\x1b[0m" if colours else _tokens().sub(_text, text)
    if len(line) > _MOST_CHARACTERS:
        # From where it was drawn anew, if it was.
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
    return row.shown(colours=colours)
