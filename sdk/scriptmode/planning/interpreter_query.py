"""Whether an interpreter can compile a script and finds its modules, without running the script or importing modules.

This process answers for its own interpreter; another interpreter runs this file as a program.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Iterable, Sequence
from importlib.machinery import PathFinder
from typing import NamedTuple

#: Time limit for another interpreter on a loaded machine.
_SECONDS = 60.0


class Answer(NamedTuple):
    """Python's text of the script's syntax error, or "", and the modules that were not found."""

    syntax_error: str
    missing: tuple[str, ...]


def query_interpreter(python: str, path: str, modules: Iterable[str]) -> Answer:
    """Return whether the interpreter ``python`` compiles the script at ``path`` and finds the top-level ``modules``.

    An interpreter that does not answer has found everything: it fails later with its own error.
    """
    if python == sys.executable:
        return _examine(path, modules)
    from scriptmode.core.machine.programs import run_program

    try:
        argv = (python, os.path.abspath(__file__), path, *modules)  # noqa: PTH100
        result = run_program(argv, _SECONDS, cwd=os.getcwd())  # noqa: PTH109
        found = json.loads(result.output.rpartition("\n")[2])
        return Answer(str(found["syntax_error"]), tuple(found["missing"]))
    except (OSError, ValueError, LookupError, TypeError):
        return Answer("", ())


def _examine(path: str, modules: Iterable[str]) -> Answer:
    search = _search_path()
    return Answer(syntax_error(path), tuple(name for name in modules if not _is_found(name, search)))


def syntax_error(path: str) -> str:
    """Return what Python shows of a script that it cannot compile: file, line, caret and error; else ""."""
    try:
        with open(path, "rb") as file, warnings.catch_warnings():  # noqa: PTH123
            # Such as an invalid escape sequence, which the script reports when it runs.
            warnings.simplefilter("ignore")
            compile(file.read(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return "".join(traceback.format_exception_only(type(error), error)).rstrip()
    except (OSError, MemoryError, RecursionError):
        pass
    return ""


def _is_found(name: str, search: Sequence[str]) -> bool:
    for finder in sys.meta_path:
        try:
            spec = finder.find_spec(name, search if finder is PathFinder else None)
        except Exception:  # noqa: BLE001 - a finder of another package; its module may exist
            return True
        if spec is not None:
            return True
    return False


def _search_path() -> list[str]:
    """Return ``sys.path`` without what only this program has there: the current directory, or its own."""
    main = os.path.dirname(os.path.abspath(getattr(sys.modules["__main__"], "__file__", None) or ""))  # noqa: PTH100, PTH120
    own = sys.path[:1] if sys.path[:1] in ([main], [os.getcwd()]) else []  # noqa: PTH109
    return [folder for folder in sys.path[len(own) :] if folder]


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_examine(sys.argv[1], sys.argv[2:])._asdict()))
