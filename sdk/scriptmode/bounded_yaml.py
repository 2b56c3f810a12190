"""YAML from files of any origin, loaded within bounds: an alias costs a few bytes and may stand for gigabytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Bytes of a file. A training job's request is smaller than this by far.
MAX_BYTES = 512 * 1024
#: Values of a document, with each alias counted as all that it stands for.
MAX_VALUES = 100_000
#: Levels of nesting. What reads the values recurses, and Python allows about 1,000 calls.
MAX_DEPTH = 100


class BoundsError(ValueError):
    """A document that is larger than the bounds of this module; the text says which, and what to do."""


def load(content: str | bytes) -> Any:
    """Return what a YAML document holds; raise `BoundsError`, and what PyYAML raises for text that is no YAML."""
    import yaml

    require_size(content)
    _require_bounds(yaml.parse(content, Loader=yaml.SafeLoader))
    return yaml.safe_load(content)


def require_size(content: str | bytes) -> None:
    """Raise `BoundsError` for a document of more than `MAX_BYTES`."""
    if len(content) > MAX_BYTES:
        raise BoundsError(f"it has more than {MAX_BYTES // 1024:,} KiB; keep what is not settings out of it")


def _require_bounds(events: Iterable[Any]) -> None:
    """Count a document's values from its parse events, aliases expanded: nothing is built yet, and nothing recurses."""
    import yaml

    #: Values of each anchor's node; none while it is not complete.
    anchored: dict[str, int | None] = {}
    #: The collections that are open: anchor and values so far. The first is the document.
    open_nodes: list[tuple[str | None, int]] = [(None, 0)]
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, 1))
            if len(open_nodes) > MAX_DEPTH:
                raise BoundsError(
                    f"its values are too deep within one another, over {MAX_DEPTH} levels; make it flatter"
                )
            if event.anchor:
                anchored[event.anchor] = None
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, values = open_nodes.pop()
        elif isinstance(event, yaml.AliasEvent):
            anchor, values = None, _values_of(event.anchor, anchored)
        elif isinstance(event, yaml.ScalarEvent):
            anchor, values = event.anchor, 1
        else:
            continue
        if anchor:
            anchored[anchor] = values
        outer, before = open_nodes[-1]
        if before + values > MAX_VALUES:
            raise BoundsError(
                f"it has more than {MAX_VALUES:,} values once its aliases (*name) are expanded; write fewer aliases"
            )
        open_nodes[-1] = (outer, before + values)


def _values_of(anchor: str, anchored: dict[str, int | None]) -> int:
    """Return how many values an alias stands for; PyYAML itself refuses one whose anchor is not there."""
    values = anchored.get(anchor, 1)
    if values is None:
        raise BoundsError(f"the alias *{anchor} stands within the value that it repeats; write the value out")
    return values
