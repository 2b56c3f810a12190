"""What has to change in a program of the SageMaker SDK v2 or v1 for scriptmode, found in its syntax tree. Pure.

A program is one block, a notebook has one for each cell; an import of one cell holds for all. Each use of a name of
sagemaker is resolved by the tables of `names`. An import is unchanged as long as a use of it has no counterpart.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from scriptmode.core.spec.older_names import ATTRIBUTES, MISSING_METHODS
from scriptmode.v2 import name_table
from scriptmode.v2.call_arguments import changed_arguments
from scriptmode.v2.import_statements import Imported, imports_of, rewrite_import
from scriptmode.v2.source_blocks import Block, Edit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_ESTIMATORS = ("Estimator", "TensorFlow")
_WITH_METHODS = (*_ESTIMATORS, "HyperparameterTuner")
_TRAINS = {*_WITH_METHODS, "TrainingJob", "Tuner"}
_VERSION = "this is scriptmode's own version now: remove what compares it with sagemaker's"
_VARIABLE = "it is also the name of a variable: rename the variable"


class Use(NamedTuple):
    """A use of sagemaker at an offset of a block, and what to do instead of it; "" where it needs no change."""

    block: int
    offset: int
    name: str
    advice: str = ""


@dataclass
class Migration:
    """The changes of a program: the edits of each block, and the uses that need none, or that have no counterpart."""

    edits: list[set[Edit]]
    unchanged: list[Use] = field(default_factory=list)
    missing: list[Use] = field(default_factory=list)


class _Expression(NamedTuple):
    """A dotted expression of sagemaker: its outermost node, what it stands for, and the part with a counterpart."""

    block: int
    outer: ast.expr
    imported: Imported
    dotted: str
    own: str | None
    node: ast.expr


class Migrator:
    """What has to change in a program, or in the cells of a notebook: one pass over its blocks."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.result = Migration([set() for _ in blocks])
        self.nodes = [(number, node) for number, block in enumerate(blocks) for node in ast.walk(block.tree)]
        self.parents = {child: node for _, node in self.nodes for child in ast.iter_child_nodes(node)}
        self.imports = _with_same_names({node: imports_of(node) for _, node in self.nodes})
        self.imported = {each.bound: each for found in self.imports.values() for each in found}
        assigned = {node.id for _, node in self.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        assigned |= {node.arg for _, node in self.nodes if isinstance(node, ast.arg)}
        #: Names whose uses are unchanged, because a use may be that of a variable.
        self.ambiguous = {
            name
            for name in assigned & self.imported.keys()
            if self.imported[name].is_module or self.imported[name].new_name != name
        }
        #: Names whose imports are unchanged.
        self.unchanged_imports = set(self.ambiguous)
        #: Nodes in f-strings, whose offsets are not known before Python 3.12.
        self.in_text = {child for _, node in self.nodes if isinstance(node, ast.JoinedStr) for child in ast.walk(node)}
        #: The packages that changed uses of a bound module need.
        self.packages: dict[str, set[str]] = {}
        #: The imports of packages at the top level of each block that are written already.
        self.imported_packages: set[tuple[int, str]] = set()

    def run(self) -> Migration:
        """Return the edits and the uses."""
        found = [each for number, node in self.nodes for each in self._expressions(number, node)]
        for each in found:
            if self._change_of(each) is None and (each.imported.is_module or each.imported.has_counterpart):
                self.unchanged_imports.add(each.imported.bound)
                self._miss(each.block, each.outer, each.dotted, name_table.advise_change(each.dotted))
        for each in found:
            self._use(each)
        self._methods({text: kind for each in found for text, kind in self._objects(each)})
        for number, node in self.nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(number, node)
        trains = any(use.name in _TRAINS for use in self.result.unchanged)
        without_counterpart = any(not each.has_counterpart for found in self.imports.values() for each in found)
        if not trains and (self.unchanged_imports or without_counterpart):
            # It trains nothing: with other sessions and inputs, the rest would not run either.
            self.result.edits = [set() for _ in self.blocks]
            self.result.unchanged.clear()
        for uses in (self.result.unchanged, self.result.missing):
            uses[:] = sorted(set(uses))
        return self.result

    def _expressions(self, number: int, node: ast.AST) -> Iterator[_Expression]:
        """Yield the dotted expression that begins with a node, if that is a name of sagemaker."""
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or node.id not in self.imported:
            return
        imported = self.imported[node.id]
        parts, nodes = imported.dotted.split("."), [node]
        begin = len(parts)
        while isinstance(parent := self.parents.get(nodes[-1]), ast.Attribute):
            nodes.append(parent)  # type: ignore[arg-type]  # an expression as well
            parts.append(parent.attr)
        used = name_table.find_counterpart(parts)
        own, part = (None, nodes[-1]) if used is None else (used.own, nodes[max(0, used.length - begin)])
        yield _Expression(number, nodes[-1], imported, ".".join(parts), own, part)

    def _change_of(self, found: _Expression) -> name_table.Call | None:
        """Return what to write for an expression; ``None`` where there is no counterpart."""
        if found.own is None or not name_table.is_adapter(found.own):
            return name_table.Call(found.own) if found.own else None
        # A call with other arguments depends on the program.
        call, change = self._call_of(found), name_table.CALLS.get(found.own)
        if call is None or change is None or call.keywords or len(call.args) != (0 if change.arguments else 1):
            return None
        return change

    def _call_of(self, found: _Expression) -> ast.Call | None:
        call = self.parents.get(found.node)
        is_call = isinstance(call, ast.Call) and call.func is found.node and call not in self.in_text
        return call if is_call else None  # type: ignore[return-value]

    def _use(self, found: _Expression) -> None:
        bound, change, call = found.imported.bound, self._change_of(found), self._call_of(found)
        unchanged = self.ambiguous if found.imported.is_module else self.unchanged_imports
        if change is None or bound in unchanged:
            return
        name = change.own.rpartition(".")[2]
        edits = self.result.edits[found.block]
        if call is not None and name in _ESTIMATORS:
            changed, missing = changed_arguments(self.blocks[found.block], call)
            edits |= changed
            self.result.missing += [Use(found.block, *each) for each in missing]
        if name == "__version__":
            self._miss(found.block, found.outer, found.dotted, _VERSION)
        package, written = name_table.package_of(change.own), found.imported.new_name
        if found.imported.is_module:
            self.packages.setdefault(bound, set()).add(package)
            written = f"{package}.{name}"
        self._replace(found.block, found.node, f"{written}{change.method}")
        if call is not None and (change.arguments or change.after):
            (_, start), (_, end) = (self.blocks[found.block].span(each) for each in (found.node, call))
            edits.add(Edit(start if change.arguments else end, end, f"{change.arguments}{change.after}"))
        self.result.unchanged.append(Use(found.block, self._offset(found.block, found.outer), name))

    def _replace(self, number: int, node: ast.AST, text: str) -> None:
        block, old = self.blocks[number], ast.unparse(node)
        if old == text:
            return
        start, end = block.span(node)
        if re.sub(r"\s", "", block.text[start:end]) == old:
            self.result.edits[number].add(Edit(start, end, text))
            return
        while not isinstance(node, ast.JoinedStr) and node in self.parents:
            node = self.parents[node]
        if isinstance(node, ast.JoinedStr):
            start, end = block.span(node)
            for match in re.finditer(rf"(?<![\w.]){re.escape(old)}(?!\w)", block.text[start:end]):
                self.result.edits[number].add(Edit(start + match.start(), start + match.end(), text))

    def _objects(self, found: _Expression) -> Iterator[tuple[str, str]]:
        """Yield the text of each target that an instance of ours is assigned to, and its class."""
        call = self.parents.get(found.outer)
        is_instance = found.outer is found.node or found.dotted.endswith(".attach")
        if not found.own or not is_instance or not isinstance(call, ast.Call) or call.func is not found.outer:
            return
        kind, statement = found.own.rpartition(".")[2], self.parents.get(call)
        yield ast.unparse(call), kind
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                yield ast.unparse(target), kind

    def _methods(self, objects: dict[str, str]) -> None:
        """Add the attributes of estimators, tuners and sessions."""
        for number, node in self.nodes:
            if not isinstance(node, ast.Attribute) or (owner := ast.unparse(node.value)) not in objects:
                continue
            if objects[owner] in _ESTIMATORS and node.attr in ATTRIBUTES:
                self._rename_attribute(number, node, owner)
                continue
            if not isinstance(node.ctx, ast.Load):
                continue
            advice = name_table.NOT_INCLUDED.get(f"sagemaker.{objects[owner]}.{node.attr}", "")
            if objects[owner] in _WITH_METHODS:
                advice = MISSING_METHODS.get(node.attr, "")
            if advice:
                self._miss(number, node, f"{owner}.{node.attr}", advice)
            else:
                self.result.unchanged.append(Use(number, self._offset(number, node), f"{owner}.{node.attr}"))

    def _rename_attribute(self, number: int, node: ast.Attribute, owner: str) -> None:
        new, (_, end) = ATTRIBUTES[node.attr], self.blocks[number].span(node)
        if node in self.in_text:
            self._replace(number, node, f"{owner}.{new}")
        else:
            self.result.edits[number].add(Edit(end - len(node.attr), end, new))

    def _import(self, number: int, node: ast.Import | ast.ImportFrom) -> None:
        block = self.blocks[number]
        start, end = block.span(node)
        for each in self.imports[node]:
            if not each.has_counterpart:
                self._miss(number, node, each.target, name_table.advise_change(each.target))
            elif each.bound in self.ambiguous:
                self._miss(number, node, each.target, _VARIABLE)
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*" and node.module in name_table.COUNTERPARTS:
            advice = f"import each name: from scriptmode import {', '.join(name_table.COUNTERPARTS[node.module])}"
            self._miss(number, node, f"from {node.module} import *", advice)
        if found := self.imports[node]:
            needed, between = self._needed(node), block.between(start)
            text = block.text[start:end]
            new = rewrite_import(text, node, found, unchanged=self.unchanged_imports, packages=needed, between=between)
            if new != text:
                edit = Edit(start, end, new)
                is_top_level = self.parents[node] is block.tree
                self.result.edits[number].add(self._import_once(number, edit, between) if is_top_level else edit)

    def _import_once(self, number: int, edit: Edit, between: str) -> Edit:
        """Return the edit of an import at the top level without a package that an earlier one of the block imports."""
        text, statements = self.blocks[number].text, edit.text.split(between)
        new = [each for each in statements if (number, each) not in self.imported_packages]
        self.imported_packages |= {(number, each) for each in new if each.startswith("import scriptmode")}
        if new:
            return edit._replace(text=between.join(new))
        line_break = re.search(r"(?:\r\n|\r|\n)\Z", text[: edit.start])
        is_whole_line = line_break and re.match(r"[ \t]*(?:[\r\n]|\Z)", text[edit.end :])
        return Edit(line_break.start(), edit.end, "") if line_break and is_whole_line else edit

    def _needed(self, node: ast.AST) -> dict[str, set[str]]:
        """Return the packages that changed uses need, by what a statement imports: once for each bound name."""
        provided = {each.bound for found in self.imports.values() for each in found if each.has_counterpart}
        return {
            each.target: self.packages[each.bound]
            for each in self.imports[node]
            if each.bound in self.packages and not (not each.has_counterpart and each.bound in provided)
        }

    def _miss(self, number: int, node: ast.AST, name: str, advice: str) -> None:
        self.result.missing.append(Use(number, self._offset(number, node), name, advice))

    def _offset(self, number: int, node: ast.AST) -> int:
        return self.blocks[number].span(node)[0]


def _with_same_names(imports: Mapping[ast.AST, list[Imported]]) -> dict[ast.AST, list[Imported]]:
    """Return imports that keep a bound name with ``as`` where their new names for it differ, as after ``except``."""
    new_names: dict[str, set[str]] = {}
    for each in (each for found in imports.values() for each in found if not each.is_module):
        new_names.setdefault(each.bound, set()).add(each.new_name or each.bound)
    return {
        node: [each._replace(has_alias=each.has_alias or len(new_names.get(each.bound, ())) > 1) for each in found]
        for node, found in imports.items()
    }
