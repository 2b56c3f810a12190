"""Python text to edit: a program, or a cell of a notebook whose magics Python cannot parse. Pure."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

#: As Python's own parser divides lines; `str.splitlines` divides at more characters.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
#: A line that is for IPython, or the value of an assignment that is: the part after the first group is not Python.
#: IPython takes lines that begin with these commands for magics as well.
_COMMANDS = "pip|pip3|conda|mamba|ls|ll|cat|cp|mv|rm|mkdir|rmdir|cd|man|less|more|env"
_MAGIC = re.compile(rf"(\s*(?:[\w.,\[\] ]+=[ \t]*)?)(?:[%!?].*|[\w.]+\?{{1,2}}\s*|(?:{_COMMANDS})(?:\s.*)?)$")
#: Line magics that run the rest of their line as Python, and cell magics that run the rest of their cell so.
_RUNS_PYTHON = re.compile(r"(\s*)%(?:time|timeit|prun|memit)[ \t]+(?=[^\s-])")
_CELLS_OF_PYTHON = ("%%time", "%%timeit", "%%capture", "%%prun", "%%memit")


class Edit(NamedTuple):
    """A replacement of the characters from ``start`` up to ``end``."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with replacements; one within another, such as in an argument that is removed, has no effect."""
    parts, done = [], 0
    for edit in sorted(edits):
        if edit.start >= done:
            parts += [text[done : edit.start], edit.text]
            done = edit.end
    return "".join([*parts, text[done:]])


def split_lines(text: str) -> list[str]:
    """Return the lines of a text with their ends."""
    return _LINE.findall(text)


@dataclass(frozen=True)
class Block:
    """A text of Python, and where its nodes are in it."""

    text: str
    #: The text as Python can parse it: of the same lengths, without what is for IPython.
    parsed: str
    tree: ast.Module

    @cached_property
    def _lines(self) -> list[tuple[int, str]]:
        lines = split_lines(self.parsed)
        return list(zip(accumulate(map(len, lines), initial=0), lines))

    def span(self, node: Any) -> tuple[int, int]:
        """Return the offsets of the first character of an expression, statement or argument, and after its last."""
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def between(self, offset: int) -> str:
        """Return what to write between two statements, of which the first begins at an offset."""
        start, line = next(each for each in reversed(self._lines) if each[0] <= offset)
        before = self.text[start:offset]
        return (re.search(r"[\r\n]*$", line)[0] or "\n") + before if not before.strip() else "; "  # type: ignore[index]

    def line_of(self, offset: int) -> int:
        """Return the number of the line of a character, from 1 on."""
        return sum(start <= offset for start, _ in self._lines) or 1

    def _offset(self, line: int, column: int) -> int:
        # Python counts columns in bytes of UTF-8, and before 3.12 wrong lines in f-strings.
        start, text = self._lines[min(line, len(self._lines)) - 1]
        return start + len(text.encode()[:column].decode(errors="replace"))


def parse_program(text: str) -> Block:
    """Return the block of a program; raise ``SyntaxError`` for what is not Python."""
    return Block(text, text, ast.parse(text))


def parse_cell(text: str) -> Block | None:
    """Return the block of a cell, or ``None`` for a cell that is not Python; raise ``SyntaxError`` for wrong Python."""
    masked = split_lines(text)
    for number, line in enumerate(masked):
        if line.strip() and not line.startswith("%%"):
            break
        if line.strip() and line.split()[0] not in _CELLS_OF_PYTHON:
            return None
        masked[number] = _mask(line)
    while True:
        parsed = "".join(masked)
        try:
            return Block(text, parsed, ast.parse(parsed))
        except SyntaxError as error:
            last = min(error.lineno or len(masked), len(masked))
            found = [each for each in range(last) if _MAGIC.match(masked[each].rstrip("\r\n"))]
            if not found:
                raise
            _mask_line(masked, found[-1])


def _mask_line(lines: list[str], number: int) -> None:
    """Replace what is for IPython in a line, and in those that it goes on in after a backslash."""
    shown = _RUNS_PYTHON.sub(_as_statement, lines[number])
    if shown != lines[number]:
        lines[number] = shown
        return
    goes_on = lines[number].rstrip().endswith("\\")
    lines[number] = _mask(lines[number])
    while goes_on and number + 1 < len(lines):
        number += 1
        goes_on = lines[number].rstrip().endswith("\\")
        lines[number] = re.sub(r"[^\r\n]", " ", lines[number])


def _as_statement(magic: re.Match[str]) -> str:
    # `%time x = f()` becomes `if 1: x = f()`, of the same length.
    return magic[1] + "if 1".ljust(len(magic[0]) - len(magic[1]) - 1) + ":"


def _mask(line: str) -> str:
    content = line.rstrip("\r\n")
    found = _MAGIC.match(content)
    begin = found[1] if found else ""
    return begin + "0".ljust(len(content) - len(begin)) + line[len(content) :]
