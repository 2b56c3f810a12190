"""What a training script does about checkpoints and SIGTERM, by line, for advice. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

#: Calls that write weights or a checkpoint, by the last part of their names.
_SAVES = frozenset({"save", "save_weights", "save_model", "save_checkpoint", "export"})
#: Calls that write checkpoints all along.
_CHECKPOINTS = frozenset(
    {"ModelCheckpoint", "BackupAndRestore", "PreemptionCheckpointHandler", "MonitoredTrainingSession"}
)


@dataclass(frozen=True)
class ScriptFindings:
    """Line numbers of a script, by their content; all empty for a script that cannot be parsed."""

    name: str
    #: Calls that save, all of them outside of loops.
    saves_once: tuple[int, ...] = ()
    #: Calls that set a handler for SIGTERM, or ignore it.
    handlers: tuple[int, ...] = ()

    @classmethod
    def read(cls, name: str, text: str) -> ScriptFindings:
        """Find the lines in a script's text."""
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            return cls(name)
        repeated = {_last_name(call.func) for call, is_repeated in _calls(tree, frozenset()) if is_repeated}
        calls = list(_calls(tree, repeated))
        if any(_last_name(call.func) in _CHECKPOINTS for call, _ in calls):
            saves: list[int] = []
        else:
            found = [(call.lineno, is_repeated) for call, is_repeated in calls if _last_name(call.func) in _SAVES]
            saves = [] if any(is_repeated for _, is_repeated in found) else [line for line, _ in found]
        handlers = [call.lineno for call, _ in calls if _handles_sigterm(call)]
        return cls(name, tuple(saves), tuple(handlers))

    def at(self, lines: tuple[int, ...]) -> str:
        """Return lines as text: ``train.py, line 7``; the script's name without any."""
        return f"{self.name}, line {', '.join(map(str, lines))}" if lines else self.name


def _calls(node: ast.AST, functions: Container[str], *, is_repeated: bool = False) -> Iterator[tuple[ast.Call, bool]]:
    """Yield each call below a node, with whether it is in a loop, one of the functions, or a callback of Keras."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child, is_repeated
        is_loop = isinstance(child, (ast.For, ast.While, ast.AsyncFor))
        if isinstance(child, ast.FunctionDef):
            is_loop = child.name in functions or child.name.startswith("on_")
        yield from _calls(child, functions, is_repeated=is_repeated or is_loop)


def _last_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _handles_sigterm(call: ast.Call) -> bool:
    return _last_name(call.func) == "signal" and bool(call.args) and _last_name(call.args[0]) == "SIGTERM"
