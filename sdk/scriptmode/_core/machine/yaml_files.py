"""YAML of the user's own files."""

from __future__ import annotations

from typing import Any

from scriptmode.errors import ConfigError


def parse_yaml(name: str, content: str | bytes) -> Any:
    """Return what a YAML document holds; raise `ConfigError` for text that is not YAML."""
    import yaml

    try:
        return yaml.safe_load(content)
    # ValueError: bytes that are not text, and values such as the date 2020-13-45.
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        raise ConfigError(f"{name} is not valid YAML: {_describe(problem)}", "correct the file") from problem


def _describe(error: Exception) -> str:
    """Return an error in one line: the position first, where PyYAML knows it."""
    if (mark := getattr(error, "problem_mark", None)) is None:
        return " ".join(str(error).split())
    return f"line {mark.line + 1}, column {mark.column + 1}: {getattr(error, 'problem', None) or 'it cannot be parsed'}"
