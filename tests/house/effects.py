"""What a module does beside computing values, as its text tells."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tests.house import imports

if TYPE_CHECKING:
    from tests.house.sources import Source

#: Modules of the standard library that act.
ACTING = {"subprocess", "socket", "time", "signal", "shutil", "tempfile", "threading", "multiprocessing", "io"}
#: Of `os`, what is a type or computes a value.
VALUES_OF_OS = {"path", "pathsep", "PathLike", "fspath"}
CALLS = ("open", "print", "input")
#: Each trusts a path: that of realpath and resolve is wrong where it is too long, and is another one as soon as another
#: process puts a link there; rmtree is recursive.
BY_PATH = {"realpath", "resolve", "rmtree"}


def used_of_os(source: Source) -> set[str]:
    """Return the names used of `os`, however it was imported; "*" where it was imported by another name."""
    used = {item.dotted.split(".")[1] for item in imports.imported(source) if item.dotted.startswith("os.")}
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            used.add(node.attr)
        if isinstance(node, ast.Import) and any(alias.name == "os" and alias.asname for alias in node.names):
            used.add("*")
    return used


def effects(source: Source) -> set[str]:
    """Return what a module uses that acts on files, processes, the clock or the network."""
    found = {item.dotted for item in imports.imported(source) if item.module.partition(".")[0] in ACTING}
    found |= {f"os.{name}" for name in used_of_os(source) - VALUES_OF_OS}
    for node in source.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            found.add(node.func.id)
    return found


def resolved(source: Source) -> set[str]:
    """Return the functions of ``BY_PATH`` that a module uses or imports, by whatever name."""
    found: set[str] = set()
    for node in source.nodes:
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.ImportFrom):
            found.update(alias.name for alias in node.names)
    return found & BY_PATH
