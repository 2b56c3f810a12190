"""YAML from files of any origin, loaded within bounds: an alias costs a few bytes and may stand for gigabytes."""

from __future__ import annotations

import errno
import os
import stat
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: Bytes of a file. A training job's request is smaller than this by far.
MAX_BYTES = 512 * 1024
#: Values of a document, with each alias counted as all that it stands for.
MAX_VALUES = 100_000
#: Levels of nesting, aliases expanded. What reads the values recurses, and Python allows about 1,000 calls.
MAX_DEPTH = 100
#: A program that writes to a FIFO, a shell's ``<(...)`` among them, opens it within this many seconds.
_WRITER_OPENS_SECONDS = 2.0
#: The tag of the key ``<<``.
_MERGE = "tag:yaml.org,2002:merge"


class _Size(NamedTuple):
    """The values of a node, itself among them, and the levels of collections in it; aliases expanded."""

    values: int
    depth: int


class RefusedError(SpecError):
    """A document that is YAML and still not loaded; the message says why, and what to do."""


class BoundsError(RefusedError):
    """A document that is larger than the bounds of this module; the message says which, and what to do."""


class RepeatedKeyError(RefusedError):
    """A mapping with a key that occurs twice, of which PyYAML would keep the last alone."""


def read_yaml(path: Path) -> bytes:
    """Return the bytes of a file, at most one more than `MAX_BYTES`: a device has no end.

    Raises ``OSError`` for a FIFO that no process writes to, instead of waiting for one.
    """
    with open(path, "rb", opener=_open_without_waiting) as file:
        start = b""
        if stat.S_ISFIFO(os.fstat(file.fileno()).st_mode):
            start = _first_byte(file.fileno())
        if sys.platform != "win32":
            os.set_blocking(file.fileno(), True)
        return start + file.read(MAX_BYTES + 1 - len(start))


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _first_byte(fifo: int) -> bytes:
    """Return a FIFO's first byte, nothing while its writer has written none; raise ``OSError`` without a writer."""
    import select

    select.select([fifo], [], [], _WRITER_OPENS_SECONDS)
    try:
        start = os.read(fifo, 1)
    except BlockingIOError:
        return b""
    if not start:
        raise OSError(errno.ENODATA, "it is a FIFO that no process writes to")
    return start


def load_yaml(content: str | bytes) -> Any:
    """Return what a YAML document holds; raise `RefusedError`, and what PyYAML raises for text that is not YAML."""
    import yaml

    require_size(content)
    _require_bounds(yaml.parse(content, Loader=yaml.SafeLoader))
    return yaml.load(content, Loader=_loader())  # noqa: S506 - a SafeLoader


@cache
def _loader() -> type[Any]:
    """Return PyYAML's safe loader, except that it refuses a key that occurs twice."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            # Before merges (<<) add their keys, which others override.
            lines: dict[tuple[str, str], int] = {}
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                    continue
                line = key.start_mark.line + 1
                if (key.tag, key.value) in lines:
                    first = lines[key.tag, key.value]
                    raise RepeatedKeyError(
                        f"the key {key.value!r} in line {line} is in line {first} already",
                        advice="remove one of the two",
                    )
                lines[key.tag, key.value] = line
            return node

    return Loader


def syntax_error_text(error: Exception) -> str:
    """Return the error of a text that is not YAML in one line: the position first, where PyYAML knows it."""
    if (mark := getattr(error, "problem_mark", None)) is None:
        return " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {getattr(error, 'problem', None) or 'it cannot be parsed'}"


def require_size(content: str | bytes) -> None:
    """Raise `BoundsError` for a document of more than `MAX_BYTES`."""
    if len(content) > MAX_BYTES:
        raise BoundsError(f"it has more than {MAX_BYTES // 1024:,} KiB", advice="remove what is not a setting")


def _require_bounds(events: Iterable[Any]) -> None:
    """Count a document's values from its parse events, aliases expanded: nothing is built yet, and nothing recurses."""
    import yaml

    #: The size of each anchor's node; none while it is not complete.
    anchored: dict[str, _Size | None] = {}
    #: The collections that are open: anchor and size so far. The first is the document.
    open_nodes: list[tuple[str | None, _Size]] = [(None, _Size(0, 1))]
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, _Size(1, 1)))
            _require_depth(len(open_nodes))
            if event.anchor:
                anchored[event.anchor] = None
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size = open_nodes.pop()
        elif isinstance(event, yaml.AliasEvent):
            anchor, size = None, _size_of(event.anchor, anchored)
            _require_depth(len(open_nodes) + size.depth)
        elif isinstance(event, yaml.ScalarEvent):
            anchor, size = event.anchor, _Size(1, 0)
        else:
            continue
        if anchor:
            anchored[anchor] = size
        outer, before = open_nodes[-1]
        if before.values + size.values > MAX_VALUES:
            raise BoundsError(
                f"it has more than {MAX_VALUES:,} values once its aliases (*name) are expanded",
                advice="write fewer aliases",
            )
        open_nodes[-1] = (outer, _Size(before.values + size.values, max(before.depth, 1 + size.depth)))


def _require_depth(levels: int) -> None:
    if levels > MAX_DEPTH:
        raise BoundsError(
            f"its values are too deep within one another, over {MAX_DEPTH} levels", advice="make it flatter"
        )


def _size_of(anchor: str, anchored: dict[str, _Size | None]) -> _Size:
    """Return the size of what an alias stands for; PyYAML itself refuses one whose anchor is not there."""
    size = anchored.get(anchor, _Size(1, 0))
    if size is None:
        raise BoundsError(f"the alias *{anchor} stands within the value that it repeats", advice="write the value out")
    return size
