"""Links to notebooks lead to their pages.

`sdk/docs/notebooks` has symbolic links to the notebooks, which MyST would follow to files outside of the documentation.
"""  # noqa: INP001 - Sphinx's, no package

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: A link whose text may be code, which the text of a role is not.
_LINK = re.compile(r"\[`?([^\]`]+)`?\]\((?:\.\./)+notebooks/(\w+)\.ipynb\)")


def link_pages(_: Sphinx, __: str, source: list[str]) -> None:
    """Replace the links of a document."""
    source[0] = _LINK.sub(r"{doc}`\1 </notebooks/\2>`", source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the replacement with Sphinx."""
    app.connect("source-read", link_pages)
    return {"parallel_read_safe": True}
