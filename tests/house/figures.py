"""``python -m tests.house.figures [--list] [CHECKOUT]``: print how large and how plain a checkout is.

A CHECKOUT may be one of an older commit (``git worktree add``); without it, this one is measured.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.house import imports, language, loaded, sources
from tests.house.test_packages import is_thin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.house.sources import Source

RAW = "dict[str, Any]"
#: Where JSON comes in and goes out: the service's requests, HTTP, boto3 and its fakes, records and the platform's files.
BORDERS = (
    *(
        f"{sources.SDK}/{name}/"
        for name in ("core/request", "serve", "core/aws", "core/platforms/sagemaker", "testing")
    ),
    f"{sources.SDK}/platforms/local/store/",
    "entrypoints/scriptmode_runtime/environment/",
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Figure(NamedTuple):
    """A number, what it counts, and the things counted."""

    label: str
    value: str
    things: tuple[str, ...] = ()


def figures(root: Path) -> Iterator[Figure]:
    """Yield the figures of a checkout."""
    yield from _lines(root)
    yield from figures_of_text(root)


def figures_of_text(root: Path) -> Iterator[Figure]:
    """Yield the figures of a checkout that its text alone decides."""
    files = sources.product(root)
    names = [file.path for file in files if not file.path.endswith("/__init__.py")]
    yield Figure("modules", str(len(names)))
    folders = Counter(path.rpartition("/")[0] for path in names)
    yield _counted("packages with modules", (f"{folders[name]:3} {name}" for name in sorted(folders)))
    yield Figure("modules in the largest package", f"{max(folders.values())} ({folders.most_common(1)[0][0]})")
    top = [
        path for path in names if path.startswith(f"{sources.SDK}/") and path.count("/") == sources.SDK.count("/") + 1
    ]
    yield Figure("modules on the top level", str(len(top)), tuple(top))
    yield _repeated("file names used more than once", ((Path(path).name, path) for path in names))
    public = (
        (node.name, file.path)
        for file in files
        for node in file.tree.body
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name[0] != "_"
    )
    yield _repeated("public functions and classes named more than once", public)
    yield _counted("kinds of hosts asked outside the engines", kind_questions(files))
    yield Figure(RAW, str(sum(file.text.count(RAW) for file in files)))
    yield raw_outside(files)
    arrows = imports.graph(files)
    widest = max(arrows, key=lambda name: len(arrows[name]))
    yield Figure("most modules that one imports", f"{len(arrows[widest])} ({widest})")
    yield Figure("functions", str(sum(isinstance(node, FUNCTIONS) for file in files for node in file.nodes)))
    found = [offence for file in files for offence in language.of_source(file)]
    yield _counted("docstrings without a standard verb", (str(each) for each in found if each.kind == "docstring"))
    yield _counted("idioms in docstrings, comments and texts", (str(each) for each in found if each.kind == "idiom"))
    pages = [root / "README.md", *sorted((root / "sdk" / "docs").rglob("*.md"))]
    texts = ((page.relative_to(root).as_posix(), page.read_text(encoding="utf-8")) for page in pages)
    found = [offence for path, text in texts for offence in language.of_markdown(path, text)]
    yield _counted("idioms in the README and the guides", map(str, found))
    for label, when in (
        ("import circles of modules", (imports.AT_ONCE, imports.LAZY)),
        ("import circles of modules, with those for type checkers", (imports.AT_ONCE, imports.LAZY, imports.TYPES)),
    ):
        circles = imports.circles(imports.graph(files, when=when))
        yield _counted(label, (" ".join(members) for members in circles))


def lines_of_the_thin_core(root: Path) -> int:
    """Return the lines of the modules that a request for Amazon SageMaker and a job's verbs need."""
    files = [file for file in sources.product(root) if file.path.startswith(f"{sources.SDK}/")]
    return sum(len(file.text.splitlines()) for file in files if is_thin(imports.module_name(file.path)))


def raw_outside(files: Iterable[Source]) -> Figure:
    """Return how often a value of JSON has no type of its own outside the borders, and where."""
    found = {file.path: file.text.count(RAW) for file in files if not file.path.startswith(BORDERS)}
    things = tuple(f"{count} {path}" for path, count in found.items() if count)
    return Figure(f"{RAW} outside the borders", str(sum(found.values())), things)


def _lines(root: Path) -> Iterator[Figure]:
    """Yield the lines of the product, and what typical calls load and do."""
    by_package = sources.lines_by_package(root)
    total = f"{sum(by_package.values()):,}"
    yield Figure("product lines", total, tuple(f"{count:7,} {name}" for name, count in sorted(by_package.items())))
    yield Figure("lines of the thin core", f"{lines_of_the_thin_core(root):,}")
    if root != sources.ROOT:
        # Other checkouts are not installed.
        return
    for call in loaded.CALLS:
        found = loaded.measure(call)
        modules = sorted(found.lines.items(), key=lambda each: -each[1])
        yield Figure(
            f"lines loaded by {call}",
            f"{sum(found.lines.values()):,} in {len(modules)} modules",
            tuple(f"{count:7,} {name}" for name, count in modules),
        )
        if call == "fit(wait=False)":
            counts = ", ".join(f"{what} {found.work.get(what, 0)}" for what in ("parsed", "rendered", "validated"))
            yield Figure("requests in a local fit(wait=False)", counts)


def kind_questions(files: Iterable[sources.Source]) -> Iterator[str]:
    """Yield each place outside the engines that asks for a kind of host."""
    engines = (
        "sdk/scriptmode/platforms/local/hosts/",
        "sdk/scriptmode/platforms/slurm/",
        "sdk/scriptmode/core/spec/hosts.py",
    )
    for file in files:
        for node in () if file.path.startswith(engines) else file.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "HostKind":
                yield f"{file.path}:{node.lineno}: {node.attr}"


def _counted(label: str, things: Iterable[str]) -> Figure:
    found = tuple(things)
    return Figure(label, str(len(found)), found)


def _repeated(label: str, pairs: Iterable[tuple[str, str]]) -> Figure:
    paths = defaultdict(list)
    for name, path in pairs:
        paths[name].append(path)
    return _counted(label, (f"{name}: {', '.join(where)}" for name, where in sorted(paths.items()) if len(where) > 1))


def main() -> int:
    """Print the figures."""
    summary = (__doc__ or "").partition("\n")[0].partition(": ")[2]
    parser = argparse.ArgumentParser(prog="python -m tests.house.figures", description=summary)
    parser.add_argument("checkout", nargs="?", type=Path, default=sources.ROOT, metavar="CHECKOUT")
    parser.add_argument("--list", action="store_true", help="print the things counted too")
    options = parser.parse_args()
    for figure in figures(options.checkout.resolve()):
        print(f"{figure.label}: {figure.value}")
        if options.list or figure.label.startswith(("packages", "product")):
            print(*(f"    {thing}" for thing in figure.things), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
