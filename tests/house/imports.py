"""Which module imports which, from the syntax trees alone."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


def module_name(path: str) -> str:
    """Return the name a file of the SDK or of the runtime is imported by."""
    return path.partition("/")[2].removesuffix(".py").removesuffix("/__init__").replace("/", ".")


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


def graph(files: Iterable[Source], *, when: tuple[str, ...] = (AT_ONCE, LAZY)) -> dict[str, set[str]]:
    """Return the modules that each module imports, of these files alone, at the times ``when``.

    An import of a module is not an arrow to its package, though Python runs its ``__init__`` then.
    """
    files = tuple(files)
    names = {module_name(file.path) for file in files}
    arrows: dict[str, set[str]] = {}
    for file in files:
        ends = arrows.setdefault(module_name(file.path), set())
        for item in imported(file):
            if item.when in when:
                ends.update(name for name in (item.dotted, item.module) if name in names)
                if item.dotted in names:
                    ends.discard(item.module)
        ends.discard(module_name(file.path))
    return arrows


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module, each sorted (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for end in sorted(arrows.get(node, ())):
            if end not in index:
                visit(end)
                low[node] = min(low[node], low[end])
            elif end in stack:
                low[node] = min(low[node], index[end])
        if low[node] == index[node]:
            members = stack[stack.index(node) :]
            del stack[len(stack) - len(members) :]
            if len(members) > 1:
                found.append(sorted(members))

    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return sorted(found)
