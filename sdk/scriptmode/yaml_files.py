"""YAML of the user's own files: settings, and jobs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from scriptmode.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

#: The tag of the key ``<<``.
_MERGE = "tag:yaml.org,2002:merge"


class _RepeatedKeyError(Exception):
    """A mapping has a key twice, of which PyYAML would keep the last alone."""


def parse_yaml(name: str, content: str | bytes, error: Callable[..., SpecError] = SpecError) -> Any:
    """Return what a YAML document holds; raise ``error`` for text that is not YAML, and for a key that occurs twice."""
    import yaml

    try:
        return yaml.load(content, Loader=_loader())  # noqa: S506 - a SafeLoader
    except _RepeatedKeyError as repeated:
        raise error(f"{name} is refused: {repeated}", advice="remove one of the two") from None
    except RecursionError as problem:
        raise error(f"{name} is refused: its values are nested too deeply", advice="use fewer levels") from problem
    # ValueError: bytes that are not text, and values such as the date 2020-13-45.
    except (yaml.YAMLError, ValueError) as problem:
        what = f"{name} is not valid YAML: {syntax_error_text(problem)}"
        raise error(what, advice="correct the file") from problem


@cache
def _loader() -> type[Any]:
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
                if (first := lines.get((key.tag, key.value))) is not None:
                    raise _RepeatedKeyError(f"the key {key.value!r} in line {line} is in line {first} already")
                lines[key.tag, key.value] = line
            return node

    return Loader


def syntax_error_text(error: Exception) -> str:
    """Return the error of a text that is not YAML in one line: the position first, where PyYAML knows it."""
    if (mark := getattr(error, "problem_mark", None)) is None:
        return " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {getattr(error, 'problem', None) or 'it cannot be parsed'}"
