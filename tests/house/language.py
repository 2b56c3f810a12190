"""``python -m tests.house.language [PATH ...]``: list docstrings and idioms that are not plain technical English.

A docstring of a function begins with a verb of ``verbs.txt``; that of a predicate with "Return whether". A docstring of a
module, class or property may be a noun phrase. ``IDIOMS`` may occur in no docstring, comment, text or name; in tests,
which quote what programs print, in no docstring, comment or name. Without a PATH: the SDK, the runtime and the tests.
Of a Markdown file only the idioms outside code are listed.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.house import sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Checked if no path is given.
DEFAULT_PATHS = (sources.SDK, sources.RUNTIME, *sources.ENGINES, "tests")
#: Imperatives that Python's, AWS's and POSIX's own documentation uses. Add a verb that readers would look for.
VERBS = frozenset(Path(__file__).with_name("verbs.txt").read_text(encoding="utf-8").split())
#: Verbs that are imperatives only with their particle.
PHRASES = frozenset({("look", "up"), ("set", "up"), ("tear", "down"), ("back", "up"), ("back", "off")})
#: Refused even where a noun phrase may stand.
NEVER = frozenset({"give", "say", "tell", "take", "let", "whoever", "nobody"})

#: Each begins at a word; texts are searched in lower case.
IDIOMS = {
    r"(?<!as\s)(?<!become\s)nobody\b": "name the process, or 'no process', 'no reader', 'unknown'",
    r"who(?:m|so)?ever\b": "name the caller, reader or process",
    r"somebody\b": "name the caller, reader or process",
    r"amiss\b": "name what is wrong",
    r"(?:im)?patien(?:ce|t|tly)\b": "retry, backoff, deadline",
    r"(?<!\bthere\s)(?:is|are|was|were|be|being)\sno\s(?!longer\b|more\sthan\b|less\sthan\b|later\sthan\b)": "'is not a'",
    r"so\smany\b(?!\s(?:\w+\s){0,4}that\b)": "'number of ...', 'at most N ...'",
    r"so long as\b": "'while'",
    r"(?:what|nothing|none)\sthere\sis\b|what\sis\s(?:not\s)?there\b": "name the things",
    r"the\sones?\sthat\s(?:is|are)\snot\b": "name the things",
    r"without\sa\sword\b": "'without a message'",
    r"in\swords\b": "'as text'",
    r"neighbou?rs?\b": "name the process, host or module",
    r"(?:bur(?:y|ies|ied|ial)|graves?)\b": "'mark as lost', 'reconcile'",
    r"shel(?:f|ves)\b": "prefetch window, chunk",
    r"(?:put|lay|keep|move|take)s?\saside\b|(?:putting|laid|kept|moved|taken)\saside\b": "name the destination",
    r"keepers?\b": "'checkpoint sync'",
    r"(?:un)?seal(?:s|ed|ing)?\b": "sign, signature, MAC",
    r"left ?overs\b": "'orphaned processes', 'remaining files'",
    r"whole\spaths?\b": "'absolute path'",
    r"anew\b": "'again'",
    r"lest\b": "'so that ... not'",
}
_IDIOM = re.compile(rf"\b(?:{'|'.join(f'(?P<i{number}>{pattern})' for number, pattern in enumerate(IDIOMS))})")
#: Between the words of a comment or text that goes on in the next line.
_MARGIN = re.compile(r"""\s*["']?\n\s*(?:#:?\s*|f?["'])?""")
_ADVICE = tuple(IDIOMS.values())


class Offence(NamedTuple):
    """One place that is not plain technical English."""

    path: str
    line: int
    kind: str  # "docstring" or "idiom"
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def of_source(source: sources.Source) -> list[Offence]:
    """Return what is not plain English in a Python file, by line; tests are searched for idioms in prose alone."""
    is_test = source.path.startswith("tests/")
    found = [] if is_test else [*_docstring_offences(source)]
    # To tokenize a file takes a hundred times as long as to search it for idioms of any kind.
    if _IDIOM.search(_MARGIN.sub(" ", source.text).replace("_", " ").lower()):
        for line, text in (*_prose(source), *(() if is_test else _texts(source))):
            found += _idioms(source.path, line, text)
    return sorted(set(found), key=lambda offence: (offence.line, offence.text))


def of_markdown(path: str, text: str) -> list[Offence]:
    """Return the idioms in a page outside of its code."""
    without_code = re.sub(r"(?ms)^(```+|~~~+).*?^\1|`[^`\n]*`", lambda code: re.sub(r"[^\n]+", "", code[0]), text)
    return list(_idioms(path, 1, without_code))


def _idioms(path: str, line: int, text: str) -> Iterator[Offence]:
    for match in _IDIOM.finditer(text.lower()):
        where = line + text.count("\n", 0, match.start())
        context = " ".join(text[max(0, match.start() - 30) : match.end() + 30].split())
        advice = _ADVICE[int((match.lastgroup or "i0")[1:])]
        yield Offence(
            path, where, "idiom", f"{' '.join(text[match.start() : match.end()].split())!r} in {context!r}: {advice}"
        )


def _docstring_offences(source: sources.Source) -> Iterator[Offence]:
    for node in source.nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            docstring = ast.get_docstring(node)
            fault = docstring and _fault(docstring, is_property=_is_property(node), is_predicate=_is_predicate(node))
            if docstring and fault:
                first = docstring.split("\n")[0]
                yield Offence(source.path, node.lineno, "docstring", f"{node.name}: {first!r}: {fault}")
        elif isinstance(node, (ast.ClassDef, ast.Module)):
            words = _words(ast.get_docstring(node) or "")
            if words and words[0] in NEVER:
                fault = f"begins with {words[0].title()!r}: write a noun phrase"
                yield Offence(source.path, getattr(node, "lineno", 1), "docstring", fault)


def _fault(docstring: str, *, is_property: bool, is_predicate: bool) -> str:
    words = _words(docstring)
    if not words:
        return "empty"
    if words[0] in NEVER:
        return f"{words[0].title()!r}: use a standard verb"
    if is_property:
        return ""
    if words[0] not in VERBS and tuple(words) not in PHRASES:
        return f"{words[0].title()!r} is not one of the standard verbs"
    if is_predicate and words[0] == "return" and words[1:] != ["whether"]:
        return "a predicate begins with 'Return whether'"
    return ""


def _words(docstring: str) -> list[str]:
    return [word.lower() for word in re.findall(r"\w[\w'.-]*\w|\w", docstring[:80])][:2]


def _is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = [ast.unparse(decorator).rpartition(".")[2] for decorator in function.decorator_list]
    return any(name in ("property", "cached_property") for name in names)


def _is_predicate(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return isinstance(function.returns, ast.Name) and function.returns.id == "bool"


def _prose(source: sources.Source) -> Iterator[tuple[int, str]]:
    """Yield comments, docstrings and the words of the names of functions and classes."""
    yield from source.comments
    for node in source.nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.lineno, node.name.replace("_", " ")
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
            first = node.body[0].value if node.body and isinstance(node.body[0], ast.Expr) else None
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.lineno, first.value


def _texts(source: sources.Source) -> Iterator[tuple[int, str]]:
    """Yield strings of more than one word: errors, help, log lines. A value in an f-string is ``{}``."""
    inside = {id(part) for node in source.nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in source.nodes:
        if isinstance(node, ast.JoinedStr):
            parts = [str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and id(node) not in inside and " " in str(node.value):
            yield node.lineno, str(node.value)


def offences(root: Path, paths: Iterable[str] = ()) -> list[Offence]:
    """Return what is not plain English below these paths of a checkout; without any, in its Python files."""
    found: list[Offence] = []
    for path in tuple(paths) or DEFAULT_PATHS:
        if path.endswith(".py"):
            files: tuple[sources.Source, ...] = (sources.Source(path, (root / path).read_text(encoding="utf-8")),)
        else:
            files = sources.read(root, path)
        for source in files:
            # This file holds the words that it searches for.
            if source.path != "tests/house/language.py":
                found += of_source(source)
        for page in [root / path] if path.endswith(".md") else sorted((root / path).rglob("*.md")):
            found += of_markdown(page.relative_to(root).as_posix(), page.read_text(encoding="utf-8"))
    return found


def main() -> int:
    """List the offences; return 1 if there are any."""
    summary = (__doc__ or "").partition("\n")[0].partition(": ")[2]
    parser = argparse.ArgumentParser(prog="python -m tests.house.language", description=summary)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="folders and files (default: the code and its tests)")
    names = parser.parse_args().paths
    paths = [Path(name).resolve().relative_to(sources.ROOT).as_posix() for name in names]
    found = offences(sources.ROOT, paths)
    for offence in found:
        print(offence)
    docstrings = sum(offence.kind == "docstring" for offence in found)
    print(f"{docstrings} docstrings, {len(found) - docstrings} idioms")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
