"""What is shown of an untrusted line: its last frame, in colours, without other control sequences. Pure.

A program draws a progress bar as frames of one line: it returns to the start of the line with a carriage return or
backspaces, and writes the next frame over the last one. Views show what `render_line` returns, metrics and reasons of
failures are found in the `last_frame`, and readers of logs skip what `overwritten` counts. Of a frame that is shorter
than the last one a terminal would show the end of that, too.
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
#: Spaces and controls, a frame of which shows nothing.
_BLANK = bytes(range(ord("!")))
#: What returns to the start of a line; a single backspace corrects a character.
_RETURN = re.compile(r"\r|\x08{2,}")


@cache
def _tokens() -> re.Pattern[str]:
    # Compiled on first use: that takes longer than importing this module.
    return re.compile(_TOKENS)


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
    """Return the last frame of a line without control sequences; of a progress bar its last state.

    With ``colours``, colours are control sequences that are reset at the end of the line.
    """
    if line.isprintable():
        return line
    frame = last_frame(line)
    if not colours:
        return plain_text(frame)
    text = sanitize(frame)
    return f"{text}\x1b[0m" if "\x1b" in text else text


def last_frame(line: str) -> str:
    """Return what was drawn last in a line: the last text that begins at its start and is not blank.

    A line that is drawn once is returned unchanged, with its control sequences.
    """
    if not is_redrawn(line):
        return line
    return next((frame for frame in reversed(_RETURN.split(line)) if plain_text(frame).strip()), "")


def overwritten(line: bytes) -> int:
    """Return how many bytes precede the last frame of a line that may continue; 0 for a single frame."""
    return max(0, line.rstrip(_BLANK).rfind(b"\r"))
