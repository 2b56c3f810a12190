"""Which module imports which, from the syntax trees alone."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.house.sources import Source

#: When an import is executed: with its module, when a function is called, or only by a type checker.
AT_ONCE, LAZY, TYPES = "at once", "lazy", "types"


@dataclass(frozen=True)
class Import:
    """One name that a file imports: ``module`` as written, and ``name`` from it, if any."""

    module: str
    name: str
    line: int
    when: str

    @property
    def dotted(self) -> str:
        """The module's name, with the name taken from it."""
        return f"{self.module}.{self.name}" if self.name else self.module


@cache
def imported(source: Source) -> tuple[Import, ...]:
    """Return all that a file imports, anywhere in it."""
    return tuple(_imports(source.tree, AT_ONCE))


def _imports(node: ast.AST, when: str) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(alias.name, "", child.lineno, when)
        elif isinstance(child, ast.ImportFrom):
            for alias in child.names:
                yield Import("." * child.level + (child.module or ""), alias.name, child.lineno, when)
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from _imports(child, LAZY if when == AT_ONCE else when)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for statement in child.body:
                yield from _imports(ast.Module([statement], []), TYPES)
            for statement in child.orelse:
                yield from _imports(ast.Module([statement], []), when)
        else:
            yield from _imports(child, when)
