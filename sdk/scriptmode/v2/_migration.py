"""What has to change in a program of the SageMaker SDK v2 or v1 for scriptmode: its imports. Pure.

An import binds the same name to scriptmode's counterpart, so that its uses stay as they are; below a module, names that
differ are changed. Constructors rename v1's arguments. An import is unchanged while a use of it has no counterpart.
"""

from __future__ import annotations

import ast
import re
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode._core.spec.older_names import MISSING_METHODS
from scriptmode.v2 import _name_table as name_table

if TYPE_CHECKING:
    from collections.abc import Sequence

_TRAINS = ("Estimator", "TensorFlow", "HyperparameterTuner")
_VERSION = "this is scriptmode's own version now: remove what compares it with sagemaker's"
#: As Python divides lines; `str.splitlines` divides at more characters.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
#: A line for IPython, and the magics whose cell is Python.
_MAGIC = re.compile(r"\s*(?:[\w.,\[\] ]+=\s*)?[%!?]|\s*[\w.]+\?{1,2}\s*$|\s*(?:pip3?|conda|ls|cd|mkdir|cp|rm|cat)\s")
_CELLS_OF_PYTHON = ("%%time", "%%timeit", "%%capture", "%%prun")


class NotIncluded(NamedTuple):
    """A use of sagemaker without a counterpart: its place in the file, its name, and what to do instead."""

    place: str
    name: str
    advice: str


class _Binding(NamedTuple):
    """A name that an import binds: ``target`` of ``import sagemaker.inputs`` is all of it, ``dotted`` what is bound."""

    alias: ast.alias
    name: str
    dotted: str
    target: str

    @property
    def own(self) -> str:
        return name_table.find_counterpart(self.dotted)[0]


class Block:
    """A program, or a cell of a notebook; ``where`` stands before the numbers of its lines.

    Raises:
        SyntaxError: The text is not Python.
    """

    def __init__(self, text: str, where: str, *, is_cell: bool = False) -> None:
        self.text, self.where = text, where
        self._lines = _LINE.findall(text)
        self._starts = list(accumulate(map(len, self._lines), initial=0))
        self.tree = _parse_cell(self._lines) if is_cell else ast.parse(text)
        self._edits: set[tuple[int, int, str]] = set()

    def span(self, node: Any) -> slice:
        """Return where a node is; before Python 3.12 wrong in f-strings."""
        return slice(self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset))

    def _offset(self, line: int, column: int) -> int:
        # Columns are in bytes of UTF-8.
        line = min(line, len(self._lines))
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode(errors="replace"))

    def between(self, node: Any) -> str:
        """Return what stands between a statement and another one in its place."""
        line = self._lines[node.lineno - 1]
        before = line[: len(line) - len(line.lstrip())]
        is_first = len(before.encode()) == node.col_offset
        return ("\r\n" if line.endswith("\r\n") else "\n") + before if is_first else "; "

    def replace(self, node: Any, new: str) -> None:
        """Note a replacement of a node."""
        place = self.span(node)
        self._edits.add((place.start, place.stop, new))

    def changed(self) -> str:
        """Return the text with all replacements."""
        text = self.text
        for start, stop, new in sorted(self._edits, reverse=True):
            text = text[:start] + new + text[stop:]
        return text


def _parse_cell(lines: list[str]) -> ast.Module:
    """Return the tree of a cell, without what is for IPython; an empty one where the cell is not Python."""
    lines = list(lines)
    head = next((line for line in lines if line.strip()), "")
    if head.startswith("%%") and head.split()[0] not in _CELLS_OF_PYTHON:
        return ast.Module([], [])
    while True:
        try:
            return ast.parse("".join(lines))
        except SyntaxError as error:  # noqa: PERF203 - each error has another line
            magics = [number for number in range(min(error.lineno or 1, len(lines))) if _MAGIC.match(lines[number])]
            if not magics:
                raise
            _mask(lines, magics[-1])


def _mask(lines: list[str], number: int) -> None:
    """Replace a line for IPython, and those in which it goes on after a backslash."""
    line = lines[number]
    lines[number] = f"{line[: len(line) - len(line.lstrip())]}pass\n"
    while line.rstrip().endswith("\\") and number + 1 < len(lines):
        number += 1
        line, lines[number] = lines[number], "\n"


def migrate(blocks: Sequence[Block]) -> list[NotIncluded]:
    """Note the changes in the blocks of a program; return what is not included."""
    return _Migrator(blocks).run()


class _Migrator:
    """The changes of a program, in which an import of one block holds for all."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.not_included: list[NotIncluded] = []
        self.versions: list[NotIncluded] = []
        self.nodes: list[tuple[Block, Any]] = [(block, node) for block in blocks for node in ast.walk(block.tree)]
        self.imports = [(block, node, bindings) for block, node in self.nodes if (bindings := _bindings(node))]
        self.bound = {bound.name: bound.dotted for _, _, bindings in self.imports for bound in bindings if bound.dotted}
        self.attributes = [pair for pair in self.nodes if isinstance(pair[1], ast.Attribute)]
        #: Names whose imports are unchanged, and the packages that uses of the others need.
        self.unchanged: set[str] = set()
        self.packages: dict[str, set[str]] = {}

    def run(self) -> list[NotIncluded]:
        """Note all changes; none in a program that trains nothing, as the rest of it would not run with them."""
        self._list_imports()
        self._list_attributes()
        self._list_methods()
        dotted = [*self.bound.values(), *(self._dotted(node) for _, node in self.attributes)]
        # What reads the version has another one if the import is changed, and no reason to keep it.
        if not self.not_included or any(name_table.find_counterpart(name)[0] in _TRAINS for name in dotted):
            self.not_included += self.versions
            for block, node in self.attributes:
                self._change_attribute(block, node)
            for block, node, bindings in self.imports:
                block.replace(node, self._changed_import(block, node, bindings))
        return self.not_included

    def _dotted(self, node: ast.AST) -> str:
        """Return what a name or a dotted name of sagemaker stands for; "" for others."""
        text = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
        root, dot, rest = text.partition(".")
        return f"{self.bound[root]}{dot}{rest}" if root in self.bound and re.fullmatch(r"[\w.]+", text) else ""

    def _list(self, block: Block, node: Any, name: str, advice: str) -> None:
        self.not_included.append(NotIncluded(f"{block.where}{node.lineno}", name, advice))

    def _list_imports(self) -> None:
        for block, node, bindings in self.imports:
            for binding in bindings:
                if binding.dotted and not binding.own and binding.target not in name_table.COUNTERPARTS:
                    self.unchanged.add(binding.name)
                    self._list(block, node, binding.target, name_table.advise(binding.target))

    def _list_attributes(self) -> None:
        inner = {node.value for _, node in self.attributes}
        assigned = {node.id for _, node in self.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        for block, node in self.attributes:
            dotted, root = self._dotted(node), ast.unparse(node).partition(".")[0]
            is_of_module = self.bound.get(root) in name_table.COUNTERPARTS and root not in assigned
            if node in inner or not dotted or not is_of_module or name_table.find_counterpart(dotted)[0]:
                continue
            if dotted == "sagemaker.__version__":
                self.versions.append(NotIncluded(f"{block.where}{node.lineno}", dotted, _VERSION))
                continue
            self.unchanged.add(root)
            self._list(block, node, dotted, name_table.advise(dotted))

    def _list_methods(self) -> None:
        assigned = [node for _, node in self.nodes if isinstance(node, ast.Assign)]
        calls = [(assign.value.func, assign.targets) for assign in assigned if isinstance(assign.value, ast.Call)]
        trained = [targets for call, targets in calls if name_table.find_counterpart(self._dotted(call))[0] in _TRAINS]
        estimators = {ast.unparse(target) for targets in trained for target in targets}
        for block, node in self.attributes:
            if node.attr in MISSING_METHODS and ast.unparse(node.value) in estimators:
                self._list(block, node, ast.unparse(node), MISSING_METHODS[node.attr])

    def _change_attribute(self, block: Block, node: ast.Attribute) -> None:
        """Change a name below a module, where its counterpart is below another one or has another name."""
        own, rest = name_table.find_counterpart(self._dotted(node))
        old = ast.unparse(node)
        root = old.partition(".")[0]
        if not own or rest or root in self.unchanged or self.bound[root] not in name_table.COUNTERPARTS:
            return
        package, _, name = f"scriptmode.{own}".rpartition(".")
        bound = name_table.package_of(self.bound[root])
        new = f"{root}{package[len(bound) :]}.{name}"
        if package != bound:
            self.packages.setdefault(root, set()).add(package)
        if new != old and block.text[block.span(node)] == old:
            block.replace(node, new)
        elif new != old:
            self._list(block, node, old, f"write {new}")

    def _changed_import(self, block: Block, node: ast.Import | ast.ImportFrom, bindings: list[_Binding]) -> str:
        """Return an import statement for scriptmode, as several ones where its names come from several packages."""
        modules: list[str] = []
        unchanged: list[str] = []
        packages: dict[str, list[str]] = {}
        for binding in bindings:
            package, _, name = f"scriptmode.{binding.own}".rpartition(".")
            if binding.own:
                bound = name if name == binding.name else f"{name} as {binding.name}"
                packages.setdefault(package, []).append(bound)
            elif binding.target in name_table.COUNTERPARTS and binding.name not in self.unchanged:
                modules += [f"{name_table.package_of(binding.dotted)} as {binding.name}"]
                modules += sorted(self.packages.get(binding.name, ()))
            else:
                (modules if isinstance(node, ast.Import) else unchanged).append(ast.unparse(binding.alias))
        if isinstance(node, ast.Import):
            return f"import {', '.join(dict.fromkeys(modules))}"
        text = block.text[block.span(node)]
        are_same = all(binding.own.rpartition(".")[2] == binding.alias.name for binding in bindings)
        if len(packages) == 1 and are_same and not text.endswith("*"):
            return re.sub(r"(?<=from)(\s+)[\w.]+", rf"\g<1>{min(packages)}", text, count=1)
        statements = [f"import {', '.join(modules)}"] if modules else []
        statements += [f"from {package} import {', '.join(names)}" for package, names in packages.items()]
        statements += [f"from {node.module} import {', '.join(unchanged)}"] if unchanged else []
        return block.between(node).join(statements) if modules or packages else text


def _bindings(node: ast.AST) -> list[_Binding]:
    """Return what an import of sagemaker binds, with the other names of the statement; [] for other nodes."""
    bindings: list[_Binding] = []
    if isinstance(node, ast.Import):
        for alias in node.names:
            root = alias.name.partition(".")[0]
            dotted = (alias.name if alias.asname else root) if root == name_table.ROOT else ""
            bindings.append(_Binding(alias, alias.asname or root, dotted, alias.name))
    elif isinstance(node, ast.ImportFrom) and not node.level and f"{node.module}.".startswith(f"{name_table.ROOT}."):
        names, module = node.names, node.module or ""
        if names[0].name == "*" and module in name_table.COUNTERPARTS:
            names = [ast.alias(name) for name in name_table.COUNTERPARTS[module]]
        bindings = [_Binding(alias, alias.asname or alias.name, *[f"{module}.{alias.name}"] * 2) for alias in names]
    return bindings if any(binding.dotted for binding in bindings) else []
