"""The sources of a notebook's cells in its JSON text, so that all other bytes are unchanged. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scriptmode.v2.source_blocks import Edit, apply_edits, split_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+)')
#: Parts of the path of a cell's source: cells, the cell's number, source, and in a list the number of the string.
_SOURCE_DEPTH = 3


@dataclass(frozen=True)
class CellSource:
    """The source of a code cell: the cell's number from 0 on, and the offsets of its JSON strings in the notebook."""

    cell: int
    notebook: str
    strings: tuple[tuple[int, int], ...]

    @property
    def text(self) -> str:
        """The source."""
        return "".join(self._parts)

    @property
    def _parts(self) -> list[str]:
        return [json.loads(self.notebook[start:end]) for start, end in self.strings]

    def offset_in_notebook(self, offset: int) -> int:
        """Return where in the notebook the string is that has a character of the source."""
        return self.strings[self._string_of(offset)][0]

    def _string_of(self, offset: int) -> int:
        end = 0
        for number, part in enumerate(self._parts):
            end += len(part)
            if offset < end:
                return number
        return max(0, len(self.strings) - 1)

    def edits_of_notebook(self, edits: Iterable[Edit]) -> list[Edit]:
        """Return edits of the source as edits of the notebook; each replaces the strings of changed lines alone."""
        parts = self._parts
        #: The first and the last string of each group of edits, and the edits.
        groups: list[tuple[int, int, list[Edit]]] = []
        for edit in sorted(edits):
            first, last = self._string_of(edit.start), self._string_of(max(edit.start, edit.end - 1))
            if groups and first <= groups[-1][1]:
                begin, end, before = groups.pop()
                groups.append((begin, max(last, end), [*before, edit]))
            else:
                groups.append((first, last, [edit]))
        return [self._edit(parts, *group) for group in groups]

    def _edit(self, parts: list[str], first: int, last: int, edits: list[Edit]) -> Edit:
        begin = sum(map(len, parts[:first]))
        moved = [Edit(each.start - begin, each.end - begin, each.text) for each in edits]
        new = apply_edits("".join(parts[first : last + 1]), moved)
        start, end = self.strings[first][0], self.strings[last][1]
        before = self.notebook[:start]
        between = f",{before[len(before.rstrip()) :]}"
        if len(self.strings) > 1:
            between = self.notebook[self.strings[0][1] : self.strings[1][0]]
        is_list = before.rstrip().endswith(("[", ","))
        is_ascii = "\\u" in self.notebook[start:end]
        strings = [json.dumps(each, ensure_ascii=is_ascii) for each in (split_lines(new) if is_list else [new])]
        return Edit(start, end, between.join(strings))


def code_cells(notebook: str) -> list[CellSource]:
    """Return the sources of a notebook's code cells, none for a notebook of another language.

    Raises:
        ValueError: The text is not the JSON of a notebook of format 4.
    """
    content = json.loads(notebook)
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise ValueError("it is not a notebook of format 4")  # noqa: TRY004 - as for other content
    metadata = content.get("metadata") or {}
    language = (metadata.get("language_info") or {}).get("name") or (metadata.get("kernelspec") or {}).get("language")
    if "python" not in (language or "python").lower():
        return []
    strings = _strings_of_sources(notebook)
    return [
        CellSource(number, notebook, tuple(strings.get(number, ())))
        for number, cell in enumerate(cells)
        if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]


def _strings_of_sources(notebook: str) -> dict[int, list[tuple[int, int]]]:
    """Return the offsets of the strings of each cell's source, by the cell's number."""
    found: dict[int, list[tuple[int, int]]] = {}
    #: The keys of objects, ``None`` before a key, and the indices of lists, from the outermost on.
    path: list[Any] = []
    for match in _TOKEN.finditer(notebook):
        word = match[1]
        if word in "{[":
            path.append(None if word == "{" else 0)
        elif word in "}]":
            path.pop()
        elif word == ",":
            path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
        elif word != ":" and path and path[-1] is None:
            path[-1] = json.loads(word)
        elif (
            word[0] == '"' and len(path) in (_SOURCE_DEPTH, _SOURCE_DEPTH + 1) and path[::2][:2] == ["cells", "source"]
        ):
            found.setdefault(path[1], []).append(match.span(1))
    return found
