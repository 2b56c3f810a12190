"""What the syntax tree of a training script shows: its imports, an assignment of TF_CONFIG, where it saves. Pure."""

from __future__ import annotations

import ast
from collections.abc import Mapping

_TF_CONFIG = "TF_CONFIG"
_TEMPORARY = "/tmp"  # noqa: S108 - where scripts save by mistake
#: Functions and methods that save a model: the path is among their first two arguments, or given by name.
_SAVES = frozenset({"save", "save_model", "save_weights", "export", "export_saved_model"})
#: Calls whose result begins with their first argument.
_JOINS = frozenset({"join", "Path", "str"})


def required_modules(tree: ast.Module) -> dict[str, int]:
    """Return the top-level modules that a script imports in any case, with the line of the first import of each.

    Imports within ``try``, ``if`` and functions may be meant to fail, or may not run.
    """
    found: dict[str, int] = {}
    for statement in tree.body:
        names = []
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
            names = [statement.module]
        for name in names:
            found.setdefault(name.partition(".")[0], statement.lineno)
    return found


def replaces_tf_config(tree: ast.Module) -> int | None:
    """Return the line in which a script assigns TF_CONFIG that does nothing else with it; ``None`` without one.

    A script that also reads it may only change its own task.
    """
    mentions = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value == _TF_CONFIG]
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and node.slice in mentions
    ]
    return min(lines) if lines and len(lines) == len(mentions) else None


def temporary_model(tree: ast.Module) -> tuple[str, int] | None:
    """Return where a script saves, and the line, if that is below ``/tmp`` each time; ``None`` for other scripts."""
    texts = {
        target.id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node.func) in _SAVES]
    paths = [(_temporary_path(call, texts), call.lineno) for call in calls]
    return min(paths, key=lambda saved: saved[1]) if paths and all(path for path, _ in paths) else None


def _temporary_path(call: ast.Call, texts: Mapping[str, str]) -> str:
    """Return the path below ``/tmp`` that a call is given; "" for another path, and for one that is not known."""
    given = [_text(each, texts) for each in (*call.args[:2], *(keyword.value for keyword in call.keywords))]
    return next((text for text in given if text == _TEMPORARY or text.startswith(f"{_TEMPORARY}/")), "")


def _text(node: ast.AST, texts: Mapping[str, str]) -> str:
    """Return the text that an expression begins with, as far as it is in the script; else ""."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.Name):
        return texts.get(node.id, "")
    if isinstance(node, ast.JoinedStr):
        return _text(node.values[0], texts) if node.values else ""
    if isinstance(node, ast.BinOp):
        return _text(node.left, texts)
    if isinstance(node, ast.Call) and _name(node.func) in _JOINS and node.args:
        return _text(node.args[0], texts)
    return ""


def _name(function: ast.AST) -> str:
    return str(getattr(function, "attr", getattr(function, "id", "")))
