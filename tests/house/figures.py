"""``python -m tests.house.figures [--list] [--times] [CHECKOUT]``: print how large and how plain a checkout is.

A CHECKOUT may be one of an older commit (``git worktree add``); without it, this one is measured.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.house import imports, language, raw_dicts, sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Figure(NamedTuple):
    """A number, what it counts, and the things counted."""

    label: str
    value: str
    things: tuple[str, ...] = ()


def figures(root: Path) -> Iterator[Figure]:
    """Yield the figures of a checkout that its text alone decides."""
    files = sources.product(root)
    names = [file.path for file in files if not file.path.endswith("/__init__.py")]
    yield Figure("modules", str(len(names)))
    folders = Counter(path.rpartition("/")[0] for path in names)
    yield Figure(
        "packages with modules", str(len(folders)), tuple(f"{folders[name]:3} {name}" for name in sorted(folders))
    )
    yield Figure("modules in the largest package", f"{max(folders.values())} ({folders.most_common(1)[0][0]})")
    yield Figure("private modules", str(sum("/_" in path and "/__" not in path for path in names)))
    yield _repeated("file names used more than once", ((Path(path).name, path) for path in names))
    yield _repeated("public functions and classes named more than once", _public_names(files))
    yield from _language(root, files)
    raw = tuple(raw_dicts.annotations(files))
    yield Figure("annotations dict[str, Any] outside the modules of JSON", str(len(raw)), raw)
    packages = {imports.module_name(file.path) for file in files if file.path.endswith("/__init__.py")}
    for label, when in (
        ("import circles of modules", (imports.AT_ONCE, imports.LAZY)),
        ("import circles of modules, with those for type checkers", (imports.AT_ONCE, imports.LAZY, imports.TYPES)),
    ):
        arrows = imports.graph(files, when=when)
        yield _circles(label, arrows)
        yield _circles(label.replace("modules", "packages"), imports.of_packages(arrows, packages))


def _repeated(label: str, pairs: Iterable[tuple[str, str]]) -> Figure:
    paths = defaultdict(list)
    for name, path in pairs:
        paths[name].append(path)
    repeated = {name: where for name, where in sorted(paths.items()) if len(where) > 1}
    return Figure(label, str(len(repeated)), tuple(f"{name}: {', '.join(where)}" for name, where in repeated.items()))


def _public_names(files: Iterable[sources.Source]) -> Iterator[tuple[str, str]]:
    for file in files:
        for node in file.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name[0] != "_":
                yield node.name, file.path


def _language(root: Path, files: Iterable[sources.Source]) -> Iterator[Figure]:
    functions = [
        node for file in files for node in file.nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    first = Counter((ast.get_docstring(node) or "-").split()[0].strip(".,;") for node in functions)
    yield Figure("functions", str(len(functions)))
    yield Figure(
        "functions whose docstring begins with Give, Say or Tell", str(first["Give"] + first["Say"] + first["Tell"])
    )
    offences = [offence for file in files for offence in language.of_source(file)]
    docstrings = [str(offence) for offence in offences if offence.kind == "docstring"]
    yield Figure("docstrings without a standard verb", str(len(docstrings)), tuple(docstrings))
    idioms = [str(offence) for offence in offences if offence.kind != "docstring"]
    yield Figure("idioms in docstrings, comments and texts", str(len(idioms)), tuple(idioms))
    texts = [str(offence) for file in files for offence in language.of_texts(file)]
    yield Figure("idioms in help, errors and other texts", str(len(texts)), tuple(texts))
    pages = [root / "README.md", *sorted((root / "sdk" / "docs").rglob("*.md"))]
    found = [
        str(offence)
        for page in pages
        for offence in language.of_markdown(page.relative_to(root).as_posix(), page.read_text(encoding="utf-8"))
    ]
    yield Figure("idioms in the README and the guides", str(len(found)), tuple(found))


def _circles(label: str, arrows: dict[str, set[str]]) -> Figure:
    found = imports.circles(arrows)
    return Figure(label, str(len(found)), tuple(" ".join(members) for members in found))


def house_cases(root: Path) -> Figure:
    """Return how many cases pytest collects from a checkout's house tests."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/house"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root, env=_environment(root))
    return Figure("house cases", str(sum("::" in line for line in done.stdout.splitlines())))


def times(root: Path) -> Iterator[Figure]:
    """Yield the best times of 20 to start Python and import each half."""
    for module in ("scriptmode", "scriptmode_runtime.__main__"):
        command = [sys.executable, "-c", f"import {module}"]
        best = min(_seconds(command, root) for _ in range(20))
        yield Figure(f"python -c 'import {module}'", f"{1000 * best:.0f} ms")


def _seconds(command: list[str], root: Path) -> float:
    begin = time.monotonic()
    subprocess.run(command, check=True, env=_environment(root))
    return time.monotonic() - begin


def _environment(root: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(root / "sdk"), str(root / "entrypoints")))}


def main() -> int:
    """Print the figures."""
    summary = (__doc__ or "").partition("\n")[0].partition(": ")[2]
    parser = argparse.ArgumentParser(prog="python -m tests.house.figures", description=summary)
    parser.add_argument("checkout", nargs="?", type=Path, default=sources.ROOT, metavar="CHECKOUT")
    parser.add_argument("--list", action="store_true", help="print the things counted too")
    parser.add_argument("--times", action="store_true", help="measure how long imports take too")
    options = parser.parse_args()
    root = options.checkout.resolve()
    found = [*figures(root), house_cases(root), *(times(root) if options.times else ())]
    for figure in found:
        print(f"{figure.label}: {figure.value}")
        if options.list or figure.label.startswith("packages"):
            print(*(f"    {thing}" for thing in figure.things), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
