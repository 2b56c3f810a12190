"""The places where the product's code can be changed by one small fault, and the sample of them."""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.house import sources

BOUNDARIES = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OPPOSITES = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.LShift: ast.RShift, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
#: Functions whose calls are texts for people or types: neither they nor their arguments are changed.
MESSAGES = frozenset(
    "TypeVar cast debug echo error exception info log note print secho warn warning".split()  # noqa: SIM905 - one line
)
#: Fields of annotations and of declarations, unless they are those of a call.
DECLARATIONS = frozenset({"annotation", "bases", "decorator_list", "keywords", "returns"})
#: Of the changed strings, one in this number is a candidate: they are half of all places.
STRINGS = 6
#: Each package has this number of mutants at least, if it has as many places.
FEWEST = 4


class Mutant(NamedTuple):
    """One small fault. ``start`` and ``end`` are byte offsets in the file; ``first`` to ``last`` the statement's lines."""

    path: str
    line: int
    column: int
    operator: str
    before: str
    after: str
    start: int
    end: int
    first: int
    last: int

    def __str__(self) -> str:
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.path}:{self.line}:{self.column} {self.operator}: {before[:70]} -> {after[:70]}"

    @property
    def package(self) -> str:
        """The folder of the file."""
        return self.path.rpartition("/")[0]

    def apply(self, text: bytes) -> bytes:
        """Return the file's content with the fault."""
        return text[: self.start] + self.after.encode() + text[self.end :]


def sample(files: Iterable[sources.Source], size: int, seed: str) -> list[Mutant]:
    """Return about ``size`` mutants by package, the same ones for the same code: chosen by a hash, not by an order."""
    packages = defaultdict(list)
    for file in files:
        for mutant in mutants(file):
            rank = hashlib.sha256(f"{seed} {mutant}".encode()).hexdigest()
            if mutant.operator != "string" or int(rank, 16) % STRINGS == 0:
                packages[mutant.package].append((rank, mutant))
    total = sum(map(len, packages.values()))
    counts = {package: max(FEWEST, -(-len(places) * size // total)) for package, places in packages.items()}
    return sorted(mutant for package in packages for _, mutant in sorted(packages[package])[: counts[package]])


def mutants(file: sources.Source) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    content, starts = file.text.encode(), [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, statement in _places(file.tree, file.tree):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        body = getattr(statement, "body", None)
        last = max(statement.lineno, body[0].lineno - 1) if body else statement.end_lineno
        for operator, after in _changes(node, statement):
            texts = (operator, content[start:end].decode(), after)
            yield Mutant(file.path, node.lineno, node.col_offset, *texts, start, end, statement.lineno, last)


def _places(node: ast.AST, statement: ast.AST) -> Iterator[tuple[ast.AST, ast.stmt]]:
    """Yield the nodes of code with their statements: no annotations, texts for people, names for type checkers."""
    if _is_skipped(node):
        return
    statement = node if isinstance(node, ast.stmt) else statement
    if hasattr(node, "lineno"):
        yield node, statement
    for name, value in ast.iter_fields(node):
        if name not in DECLARATIONS or isinstance(node, ast.Call):
            for child in value if isinstance(value, list) else [value]:
                yield from _places(child, statement) if isinstance(child, ast.AST) else ()


def _is_skipped(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "__all__"
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, (ast.Call, ast.Yield, ast.YieldFrom))
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in MESSAGES
    if isinstance(node, ast.keyword):
        return node.arg in {"help", "metavar", "epilog", "short_help"}
    return isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom))


def _changes(node: ast.AST, statement: ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the operators that apply to a node, with the code that replaces it."""
    if isinstance(node, ast.stmt):
        yield from _statements(node)
    elif node is getattr(statement, "test", None) and isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
        yield "condition", f"(not {ast.unparse(node)})"
    elif isinstance(node, ast.Constant):
        yield from _constants(node.value)
    else:
        yield from _expressions(node)


def _expressions(node: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for operator, others in (("boundary", BOUNDARIES), ("comparison", OPPOSITES)):
            if other := others.get(type(node.ops[0])):
                yield operator, f"({ast.unparse(ast.Compare(node.left, [other()], node.comparators))})"
    elif isinstance(node, ast.BoolOp):
        yield "and/or", f"({ast.unparse(ast.BoolOp(OPPOSITES[type(node.op)](), node.values))})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.BinOp) and type(node.op) in OPPOSITES and not _is_text(node.left, node.right):
        yield "arithmetic", f"({ast.unparse(ast.BinOp(node.left, OPPOSITES[type(node.op)](), node.right))})"
    elif isinstance(node, ast.IfExp):
        yield "condition", f"({ast.unparse(ast.IfExp(node.test, node.orelse, node.body))})"


def _is_text(*operands: ast.expr) -> bool:
    """Return whether one operand is a text or a sequence, which can only be added."""
    texts = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
    return any(isinstance(each, texts) or isinstance(getattr(each, "value", None), (str, bytes)) for each in operands)


def _constants(value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, bool):
        yield "boolean", f"({not value})"
    elif isinstance(value, (int, float)):
        yield "number", f"({value + 1!r})"
    elif isinstance(value, str) and not any(map(str.isspace, value)):  # a text with spaces is for people
        yield "string", f"({f'{value}x'!r})"


def _statements(node: ast.stmt) -> Iterator[tuple[str, str]]:
    if isinstance(node, ast.Return) and isinstance(node.value, (ast.Compare, ast.BoolOp)):
        yield "return", f"return not ({ast.unparse(node.value)})"
    elif isinstance(node, ast.Return) and node.value is not None and getattr(node.value, "value", "") is not None:
        yield "return", "return None"
    elif isinstance(node, (ast.Break, ast.Continue)):
        yield "loop", "continue" if isinstance(node, ast.Break) else "break"
    elif isinstance(node, (ast.Raise, ast.AugAssign, ast.Delete)) or (
        (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Attribute, ast.Subscript)))
    ):
        yield "statement", "pass"
