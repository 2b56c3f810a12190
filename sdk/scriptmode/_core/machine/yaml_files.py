"""YAML of the user's own files."""

from __future__ import annotations

from functools import cache
from typing import Any

from scriptmode.errors import ConfigError

#: The tag of the key ``<<``.
_MERGE = "tag:yaml.org,2002:merge"


class _RefusedError(Exception):
    """A key that occurs twice, which PyYAML would accept, or a value within itself; and the next step."""


def parse_yaml(name: str, content: str | bytes) -> Any:
    """Return what a YAML document holds; raise `ConfigError` for text that is not YAML or that has a key twice."""
    import yaml

    try:
        return yaml.load(content, Loader=_loader())  # noqa: S506 - a SafeLoader
    except _RefusedError as refused:
        what, advice = refused.args
        raise ConfigError(f"{name} is refused: {what}", advice) from None
    except RecursionError as problem:
        raise ConfigError(f"{name} is refused: its values are nested too deeply", "use fewer levels") from problem
    # ValueError: bytes that are not text, and values such as the date 2020-13-45.
    except (yaml.YAMLError, ValueError) as problem:
        what = f"{name} is not valid YAML: {_syntax_error_text(problem)}"
        raise ConfigError(what, "correct the file") from problem


@cache
def _loader() -> type[Any]:
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            # What reads a value that has itself within would not end.
            event, opened = self.peek_event(), self.__dict__.setdefault("opened", [])
            if isinstance(event, yaml.AliasEvent) and event.anchor in opened:
                raise _RefusedError(f"the alias *{event.anchor} is within the value that it repeats", "write it out")
            opened.append(getattr(event, "anchor", None))
            node = super().compose_node(parent, index)
            opened.pop()
            return node

        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            # Before merges (<<) add their keys, which others override.
            lines: dict[tuple[str, str], int] = {}
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                    continue
                line = key.start_mark.line + 1
                if (first := lines.get((key.tag, key.value))) is not None:
                    what = f"the key {key.value!r} in line {line} is in line {first} already"
                    raise _RefusedError(what, "remove one of the two")
                lines[key.tag, key.value] = line
            return node

    return Loader


def _syntax_error_text(error: Exception) -> str:
    """Return the error of a text that is not YAML in one line: the position first, where PyYAML knows it."""
    if (mark := getattr(error, "problem_mark", None)) is None:
        return " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {getattr(error, 'problem', None) or 'it cannot be parsed'}"
