"""Resolve references to the documentation of public names, and leave names of other projects without a link.

A class is documented under the name that users import, `scriptmode.TrainingJob`. Annotations and docstrings use the
module that defines it, `scriptmode._job.TrainingJob`.
"""  # noqa: INP001 - Sphinx's, no package

from __future__ import annotations

import builtins
import importlib
import typing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

#: Modules of the standard library whose names annotations use without the module.
FOREIGN = ("collections.abc", "datetime", "os", "pathlib", "types", "typing", "enum", "concurrent.futures")
#: Types of annotations that are not documented separately: aliases, and what only this project creates.
ALIASES = frozenset(
    {"Channel", "Distribution", "Files", "GitSource", "Input", "JobDescription", "Lines", "OnLine", "Points"}
)


def resolve(app: Sphinx, env: BuildEnvironment, node: Any, content: nodes.Element) -> nodes.Node | None:
    """Return a link, or only the text, for a reference that Sphinx cannot resolve."""
    target = str(node.get("reftarget", ""))
    if node.get("refdomain") not in ("py", "", None):
        return None
    domain = env.get_domain("py")
    documented = documented_as(target, domain.objects)  # type: ignore[attr-defined]
    if documented is not None:
        place = domain.objects[documented]  # type: ignore[attr-defined]
        from sphinx.util.nodes import make_refnode

        return make_refnode(app.builder, node["refdoc"], place.docname, place.node_id, content, documented)
    return content if is_foreign(target) or target.rpartition(".")[2] in ALIASES else None


def default_values(_app: object, _what: str, _name: str, _thing: object, *rest: Any) -> tuple[str, str] | None:
    """Replace a dataclass's `<factory>` by `...` in a signature."""
    _options, signature, returned = rest
    return (signature.replace("<factory>", "..."), returned) if signature else None


def trees(_app: object, _what: str, _name: str, _thing: object, *rest: Any) -> None:
    """Render a tree in a docstring, such as the tree of errors, as a literal block."""
    _options, lines = rest
    if any("├──" in line for line in lines):
        first = next(place for place, line in enumerate(lines) if "├──" in line) - 1
        lines[first:] = ["::", "", *(f"    {line.replace('``', '')}" for line in lines[first:])]


def documented_as(target: str, documented: typing.Mapping[str, Any]) -> str | None:
    """Return the public name of an object named by its defining module, such as `scriptmode._job.TrainingJob`."""
    first, _, last = target.rpartition(".")
    if first.partition(".")[0] not in ("", "scriptmode", "scriptmode_runtime"):
        return None
    names = [name for name in documented if name == last or name.endswith(f".{last}")]
    return names[0] if len(names) == 1 else None


def is_foreign(target: str) -> bool:
    """Return whether a name belongs to Python, or to an installed package of another project."""
    first, _, last = target.rpartition(".")
    if not first:
        return hasattr(builtins, last) or any(hasattr(importlib.import_module(name), last) for name in FOREIGN)
    if first.partition(".")[0] in ("scriptmode", "scriptmode_runtime"):
        return False
    if first == "tensorflow":
        return True
    try:
        return hasattr(importlib.import_module(first), last)
    except ImportError:
        return False


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the event handlers to Sphinx."""
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-signature", default_values)
    app.connect("autodoc-process-docstring", trees)
    return {"parallel_read_safe": True}
