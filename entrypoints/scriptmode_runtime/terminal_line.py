"""What a terminal shows of an untrusted line: its last state, in colours, without other control sequences. Pure.

A program draws a progress bar as frames of one line: it returns to the start of the line with a carriage return or
backspaces, and writes the next frame over the last one. Views show what `render_line` returns, metrics and reasons of
failures are found in the `last_frame`, and readers of logs skip what `overwritten` counts.
"""

from __future__ import annotations

import re
from functools import cache

#: Control sequences (ECMA-48): CSI, strings such as titles (OSC, DCS ...), two-byte escapes; then single controls, the
#: marks that change the direction of writing; the rest is text.
_TOKENS = (
    r"(?:\x1b\[|\x9b)(?P<parameters>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|(?P<string>\x1b[]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?)"
    r"|(?P<escape>\x1b[ -/]*[0-~]?)"
    r"|(?P<control>\x08+|[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069])"
    r"|(?P<text>[^\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+)"
)
_COLOUR = re.compile(r"[0-9;:]*")
_TAB = 8
#: Number of styles (colour, background, bold ...) in force at once.
_MOST_STYLES = 8
#: Number of characters interpreted of a line with frames: a progress bar that was redrawn for days is one line.
_MOST_CHARACTERS = 16 * 1024
#: Spaces and controls, a frame of which shows nothing.
_BLANK = bytes(range(ord("!")))


@cache
def _tokens() -> re.Pattern[str]:
    # Compiled on first use: that takes longer than importing this module.
    return re.compile(_TOKENS)


class _Row:
    """The cells of one line of a terminal, with their colours, and the cursor."""

    def __init__(self) -> None:
        self._cells: list[tuple[str, str]] = []
        self._cursor = 0
        #: The end of what was written since the cursor was at the start of the line.
        self._frame_end = 0
        self._styles: list[str] = []
        self._colours = ""

    def write(self, text: str) -> None:
        end = self._cursor + len(text)
        self._frame_end = max(self._frame_end if self._cursor else 0, end)
        if self._cursor > len(self._cells):
            self._cells += [(" ", "")] * (self._cursor - len(self._cells))
        self._cells[self._cursor : end] = [(character, self._colours) for character in text]
        self._cursor = end

    def control(self, characters: str) -> None:
        if characters == "\r":
            self._cursor = 0
        elif characters[0] == "\b":
            self._cursor = max(0, self._cursor - len(characters))
        elif characters == "\t":
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

    def frame(self) -> str:
        return "".join(character for character, _ in self._cells[: self._frame_end])

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


def _interpret(line: str) -> _Row:
    row = _Row()
    for token in _tokens().finditer(line[-_MOST_CHARACTERS:]):
        kind = token.lastgroup
        if kind == "text":
            row.write(token.group())
        elif kind == "control":
            row.control(token.group())
        elif kind == "final":
            row.sequence(token["parameters"], token["final"])
    return row


def sanitize(text: str) -> str:
    """Return lines without control sequences, except colours, line ends and tabs."""
    if text.isprintable():
        return text
    return "\n".join(line if line.isprintable() else _tokens().sub(_kept, line) for line in text.split("\n"))


def _kept(token: re.Match[str]) -> str:
    is_colour = token.lastgroup == "final" and token["final"] == "m" and _COLOUR.fullmatch(token["parameters"])
    return f"\x1b[{token['parameters']}m" if is_colour else _text(token)


def _text(token: re.Match[str]) -> str:
    return token.group() if token.lastgroup == "text" or token.group() == "\t" else ""


def plain_text(line: str) -> str:
    """Return a line without control sequences, except tabs."""
    return line if line.isprintable() else _tokens().sub(_text, line)


def is_redrawn(line: str) -> bool:
    """Return whether a line has several frames, or may have."""
    return "\r" in line or "\b" in line


def render_line(line: str, *, colours: bool = False) -> str:
    """Return what a terminal would show after a line was written; of a progress bar its last state.

    With ``colours``, colours are control sequences that are reset at the end of the line; all other control sequences
    are removed. Of a line of more than 16 Ki characters with carriage returns or backspaces the last frames are
    interpreted.
    """
    if line.isprintable():
        return line
    if len(line) > _MOST_CHARACTERS:
        # From the first frame that begins there, else from the last one: a long text may end with a carriage return.
        end = len(line.rstrip())
        start = line.find("\r", len(line) - _MOST_CHARACTERS, end)
        line = line[(start if start >= 0 else line.rfind("\r", 0, end)) + 1 : end]
    if len(line) > _MOST_CHARACTERS and not is_redrawn(line):
        return f"{sanitize(line)}\x1b[0m" if colours else plain_text(line)
    return _interpret(line).rendered(colours=colours)


def last_frame(line: str) -> str:
    """Return what was drawn last in a line: the last text that begins at its start and is not blank.

    A line that is drawn once is returned unchanged, with its control sequences.
    """
    if not is_redrawn(line):
        return line
    for part in reversed(line.split("\r")):
        frame = _interpret(part).frame() if "\b" in part else part
        if plain_text(frame).strip():
            return frame
    return ""


def overwritten(line: bytes) -> int:
    """Return how many bytes precede the last frame of a line that may continue; 0 for a single frame."""
    return max(0, line.rstrip(_BLANK).rfind(b"\r"))
