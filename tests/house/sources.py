"""The files of a checkout, each read and parsed once."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUNTIME = "entrypoints/scriptmode_runtime"


@dataclass(frozen=True, eq=False)
class Source:
    """One Python file; ``path`` is relative to the checkout, with slashes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The file's syntax tree."""
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the syntax tree."""
        return tuple(ast.walk(self.tree))


@cache
def read(root: Path, folder: str) -> tuple[Source, ...]:
    """Return the Python files below a folder of a checkout, sorted by path."""
    found: list[Path] = []
    for directory, _, names in os.walk(root / folder):
        found += [Path(directory, name) for name in names if name.endswith(".py")]
    return tuple(Source(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")) for path in sorted(found))


def product(root: Path = ROOT) -> tuple[Source, ...]:
    """Return the files of every package of the product."""
    found = read(root, "sdk") + read(root, "entrypoints")
    return tuple(source for source in found if not source.path.startswith("sdk/docs/"))
