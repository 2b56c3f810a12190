"""The documents of this project, and their code blocks, links and headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
DOCS = ROOT / "sdk" / "docs"
GUIDES = sorted((DOCS / "guides").glob("*.md"))
#: Documents whose code is executed.
WITH_CODE = [README, DOCS / "index.md", *GUIDES]
#: Documents whose links are checked.
WITH_LINKS = [
    *WITH_CODE, *sorted((DOCS / "reference").glob("*.md")), CONTRIBUTING, ROOT / "RELEASING.md",
    ROOT / "CHANGELOG.md", ROOT / "container" / "README.md",
    ROOT / "notebooks" / "data" / "fashion_mnist" / "README.md",
]  # fmt: skip
#: Languages of blocks that are executed, of files that a later block uses, and of blocks that are only read.
RUN, FILES = ("python", "console", "bash"), ("python", "toml", "yaml")
READ = ("text", "json", "{toctree}", "{include} ../../README.md")
#: What a document says about the block below: comments, one after another. CONTRIBUTING.md describes them.
_COMMENT = re.compile(r"<!-- (?P<name>not run|screen|needs|tolerance): (?P<value>.+?) -->\s*", re.DOTALL)
_FILE_NAME = re.compile(r"# (?P<name>[\w./-]+\.(?:py|toml|yaml))\n")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    ``not_run`` is the document's reason not to run it, ``screen`` the name of a generated screen, ``needs`` what the reader
    has installed or has for it, and ``tolerance`` the share by which numbers of its output may differ.
    """

    language: str
    text: str
    line: int
    not_run: str | None = None
    screen: str | None = None
    needs: tuple[str, ...] = ()
    tolerance: float = 0.0

    @property
    def file(self) -> str | None:
        """The name of the file that the block contains, or ``None``."""
        found = _FILE_NAME.match(self.text)
        return found["name"] if found and self.language in FILES else None


def blocks(document: Path) -> Iterator[Block]:
    """Yield a document's fenced blocks in order."""
    comments = ""
    for token in _tokens(document):
        if token.type == "fence":
            found = {each["name"]: each["value"] for each in _COMMENT.finditer(comments)}
            yield Block(
                token.info.strip(),
                token.content,
                token.map[0] + 1 if token.map else 0,
                found.get("not run"),
                found.get("screen"),
                tuple(found["needs"].split(", ")) if "needs" in found else (),
                float(found.get("tolerance", "0%").removesuffix("%")) / 100,
            )
        comments = comments + token.content if token.type == "html_block" else ""


def links(document: Path) -> Iterator[str]:
    """Yield the targets of a document's links and pictures."""
    for token in _tokens(document):
        for each in token.children or ():
            target = each.attrGet("href") or each.attrGet("src")
            if target is not None:
                yield str(target)


def anchors(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub and MyST generate them."""
    found: set[str] = set()
    tokens = _tokens(document)
    for opening, text in zip(tokens, tokens[1:]):
        if opening.type == "heading_open":
            plain = "".join(child.content for child in text.children or () if child.type in ("text", "code_inline"))
            slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
            count = 1
            while slug in found:
                slug = f"{slug.removesuffix(f'-{count - 1}')}-{count}"
                count += 1
            found.add(slug)
    return found


def label(path: Path) -> str:
    """Return a document's path in the project."""
    return path.relative_to(ROOT).as_posix()


def _tokens(document: Path) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(document.read_text())
