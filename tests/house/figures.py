"""Figures of the product's source: ``python -m tests.house.figures`` prints them."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from tests.house import loaded, sources, test_sizes

from scriptmode import engines

if TYPE_CHECKING:
    from collections.abc import Iterator

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)
BASES = (engines.Engine, engines.Fleet)


def depth(node: ast.AST, around: int = 0) -> int:
    """Return how deep statements are nested in a function; ``elif`` is as deep as its ``if``."""
    deepest = around
    for name, value in ast.iter_fields(node):
        children = [child for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST)]
        is_elif = name == "orelse" and isinstance(node, ast.If) and [type(child) for child in children] == [ast.If]
        for child in children:
            if not isinstance(child, FUNCTIONS):
                deepest = max(deepest, depth(child, around + (isinstance(child, BLOCKS) and not is_elif)))
    return deepest


def members() -> list[bool]:
    """Return of each member of an engine's base classes whether an engine has to write it: it has no default."""
    found = {}
    for kind in BASES:
        for base in reversed(kind.__mro__[:-1]):
            own = {**dict.fromkeys(base.__annotations__), **vars(base)}
            found.update({(kind, name): value for name, value in own.items() if not name.startswith("_")})
    return [value is None or _is_abstract(value) for value in found.values()]


def _is_abstract(member: object) -> bool:
    names = getattr(getattr(member, "__code__", None), "co_names", ())
    return getattr(member, "__isabstractmethod__", False) or "NotImplementedError" in names


def figures() -> Iterator[tuple[str, object]]:
    """Yield each figure with its name."""
    product = sources.product()
    functions = [node for source in product for node in source.nodes if isinstance(node, FUNCTIONS)]
    yield "lines of the product", test_sizes.lines("sdk", "entrypoints", "container", ".ci")
    yield "lines of the tests", test_sizes.lines("tests")
    for call in loaded.CALLS:
        yield f"lines loaded by {call}", sum(loaded.measure(call).lines.values())
    yield "members that an engine has to write", sum(members())
    yield "members that it may override", members().count(False)
    yield "base classes of an engine", len(BASES)
    yield "names of an engine's face", len(engines.__all__)
    yield "functions nested four deep", sum(depth(function) >= 4 for function in functions)
    yield "dict[str, Any]", sum(source.text.count("dict[str, Any]") for source in product)


if __name__ == "__main__":
    for name, value in figures():
        sys.stdout.write(f"{value:>10,}  {name}\n")
