"""Figures of the product's source: ``python -m tests.house.figures`` prints them."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from tests.house import loaded, sources, test_sizes

from scriptmode import engines
from scriptmode_local._hosts import Host
from scriptmode_local._hosts.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Iterator

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)
PROTOCOLS = (engines.Engine, Fleet, Host)


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


def methods() -> int:
    """Return the number of methods and attributes that the protocols of an engine name."""
    own = {name for kind in PROTOCOLS for base in kind.__mro__ for name in vars(base) if base.__module__ != "typing"}
    return len([name for name in own if not name.startswith("_")])


def figures() -> Iterator[tuple[str, object]]:
    """Yield each figure with its name."""
    product = sources.product()
    functions = [node for source in product for node in source.nodes if isinstance(node, FUNCTIONS)]
    yield "lines of the product", test_sizes.lines("sdk", "entrypoints", "container", ".ci")
    yield "lines of the tests", test_sizes.lines("tests")
    for call in loaded.CALLS:
        yield f"lines loaded by {call}", sum(loaded.measure(call).lines.values())
    yield "members of an engine's protocols", methods()
    yield "protocols of an engine", len(PROTOCOLS)
    yield "names of an engine's face", len(engines.__all__)
    yield "functions nested four deep", sum(depth(function) >= 4 for function in functions)
    yield "dict[str, Any]", sum(source.text.count("dict[str, Any]") for source in product)


if __name__ == "__main__":
    for name, value in figures():
        sys.stdout.write(f"{value:>10,}  {name}\n")
