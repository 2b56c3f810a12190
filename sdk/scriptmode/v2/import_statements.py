"""The import statements of sagemaker in a program, and their text for scriptmode. Pure."""

from __future__ import annotations

import ast
import re
import tokenize
from typing import TYPE_CHECKING, NamedTuple

from scriptmode.v2 import name_table
from scriptmode.v2.source_blocks import split_lines

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_SAGEMAKER = re.compile(rf"{name_table.ROOT}(\.|$)")


class Imported(NamedTuple):
    """A name that an import statement binds.

    Attributes:
        bound: The name in the program.
        dotted: What it stands for, such as ``sagemaker.session.s3_input``.
        target: What the statement imports: of ``import sagemaker.inputs``, which binds ``sagemaker``, the whole.
        own: The counterpart below ``scriptmode``; ``None`` for modules, and for what has none.
        has_alias: Whether the statement has ``as``.
    """

    bound: str
    dotted: str
    target: str
    own: str | None
    has_alias: bool

    @property
    def is_module(self) -> bool:
        """Whether the name stands for a module with counterparts."""
        return self.dotted in name_table.COUNTERPARTS

    @property
    def has_counterpart(self) -> bool:
        """Whether what is imported, or a part of it, has a counterpart."""
        is_known = self.own is not None and (not name_table.is_adapter(self.own) or self.own in name_table.CALLS)
        return is_known or self.target in name_table.COUNTERPARTS

    @property
    def new_name(self) -> str:
        """The name by which the counterpart is used."""
        own = name_table.CALLS[self.own].own if self.own in name_table.CALLS else self.own or ""
        return self.bound if self.has_alias else own.rpartition(".")[2]


def imports_of(node: ast.AST) -> list[Imported]:
    """Return the names of sagemaker that a statement binds; none for other statements, and for ``import *``."""
    if isinstance(node, ast.Import):
        return [_whole(alias) for alias in node.names if _SAGEMAKER.match(alias.name)]
    if not isinstance(node, ast.ImportFrom) or node.level or not _SAGEMAKER.match(node.module or ""):
        return []
    return [_part(node.module or "", alias) for alias in node.names if alias.name != "*"]


def _whole(alias: ast.alias) -> Imported:
    dotted = alias.name if alias.asname else name_table.ROOT
    return Imported(alias.asname or name_table.ROOT, dotted, alias.name, None, alias.asname is not None)


def _part(module: str, alias: ast.alias) -> Imported:
    dotted = f"{module}.{alias.name}"
    used = name_table.find_counterpart(dotted.split("."))
    return Imported(alias.asname or alias.name, dotted, dotted, used.own if used else None, alias.asname is not None)


def rewrite_import(
    text: str,
    node: ast.Import | ast.ImportFrom,
    found: Sequence[Imported],
    *,
    unchanged: Collection[str],
    packages: Mapping[str, set[str]],
    between: str,
) -> str:
    """Return the text of an import statement for scriptmode.

    Args:
        text: The statement.
        node: Its node.
        found: The names of sagemaker that it binds. One that has an alias here, and none in the text, gets ``as``.
        unchanged: The bound names whose import is unchanged.
        packages: The packages of scriptmode that uses of an imported module need, by the module.
        between: What stands between two statements: a line break and the indentation, or a semicolon.
    """
    if isinstance(node, ast.Import):
        return _rewrite_modules(node, unchanged, packages, between)
    old = [each for each in found if not each.has_counterpart or each.bound in unchanged]
    modules = [each for each in found if each.is_module and each not in old]
    groups: dict[str, list[Imported]] = {}
    for each in found:
        if each.own is not None and each not in old:
            groups.setdefault(name_table.package_of(each.own), []).append(each)
    if len(groups) == 1 and len(found) == len(node.names) == sum(map(len, groups.values())):
        return _rewrite_in_place(text, *groups.items())
    needed = {package for each in found if each.is_module for package in packages.get(each.target, ())}
    statements = [f"import {_package(needed)}"] if modules or needed else []
    statements += [f"from {package} import {', '.join(map(_new_alias, each))}" for package, each in groups.items()]
    if not statements:
        return text
    if old:
        names = (_alias(each, each.dotted.rpartition(".")[2]) for each in old)
        statements.append(f"from {node.module} import {', '.join(names)}")
    comments: list[str] = []
    if between.startswith(("\n", "\r")):
        tokens = tokenize.generate_tokens(iter(split_lines(text)).__next__)
        comments = [each.string for each in tokens if each.type == tokenize.COMMENT]
    return between.join([*comments, *statements])


def _rewrite_modules(
    node: ast.Import, unchanged: Collection[str], packages: Mapping[str, set[str]], between: str
) -> str:
    found: list[str] = []
    for alias in node.names:
        old = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
        imported = _whole(alias) if _SAGEMAKER.match(alias.name) else None
        needed = packages.get(imported.target, set()) if imported else set()
        if imported and (needed or (imported.has_counterpart and imported.bound not in unchanged)):
            found.append(_package(needed))
        if imported is None or not imported.has_counterpart or imported.bound in unchanged:
            found.append(old)
    found = list(dict.fromkeys(found))
    if len(node.names) == 1:
        return between.join(f"import {each}" for each in found)
    return f"import {', '.join(found)}"


def _rewrite_in_place(text: str, group: tuple[str, list[Imported]]) -> str:
    """Return a statement whose names all come from one package: its layout and its comments are unchanged."""
    package, found = group
    head, imports, rest = re.sub(r"(?<=from)(\s+)[\w.]+", rf"\g<1>{package}", text, count=1).partition("import")
    for each in found:
        old, new = each.dotted.rpartition(".")[2], each._replace(has_alias=False).new_name
        written = f"{new} as {old}" if each.has_alias and each.bound == old else new
        rest = re.sub(rf"\b{old}\b(\s+as\s+{old}\b)?", written, rest)
    return head + imports + re.sub(r"\b(\w+) as \1\b", r"\1", rest)


def _package(needed: set[str]) -> str:
    # `import scriptmode.aws` binds scriptmode as well.
    return max(needed, default="scriptmode")


def _new_alias(imported: Imported) -> str:
    return _alias(imported, imported._replace(has_alias=False).new_name)


def _alias(imported: Imported, name: str) -> str:
    return f"{name} as {imported.bound}" if imported.has_alias and name != imported.bound else name
