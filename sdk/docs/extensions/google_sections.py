"""Render Google's sections of docstrings (Args, Returns, Raises) with Sphinx's napoleon.

Napoleon's own extension takes the first words of a property's docstring, up to a colon, for the property's type. This
one does not.
"""  # noqa: INP001 - Sphinx's, no package

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sphinx.ext.napoleon import Config, GoogleDocstring

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: Kinds of objects whose docstrings napoleon would search for a type.
_WITH_TYPE = frozenset({"attribute", "data", "property"})


def render(app: Sphinx, what: str, name: str, thing: object, *rest: Any) -> None:
    """Replace the lines of a docstring by their reStructuredText."""
    options, lines = rest
    kind = "method" if what in _WITH_TYPE else what
    lines[:] = GoogleDocstring(lines, Config(napoleon_use_rtype=False), app, kind, name, thing, options).lines()


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the event handler to Sphinx."""
    app.connect("autodoc-process-docstring", render)
    return {"parallel_read_safe": True}
