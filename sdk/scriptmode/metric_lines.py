"""Values of metrics in a job's log lines, found by the regular expressions that define them. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class Definition:
    """One of a job's MetricDefinitions. Raises `DataError` for what is no regular expression."""

    def __init__(self, name: str, regex: str) -> None:
        self.name = name
        try:
            self._pattern = re.compile(regex)
        except re.error as error:
            rest = "" if error.pos is None else f", where it goes on with {regex[error.pos : error.pos + 20]!r}"
            raise DataError(
                f"metric {name!r}: {regex!r} is no regular expression: {error}{rest}; correct its Regex"
            ) from error
        self._group = 1 if self._pattern.groups else 0

    def values(self, line: str) -> Iterator[float]:
        """Give the values in a line: the first group, else the whole match; what is no number is passed over."""
        for match in self._pattern.finditer(line):
            value = _number(match.group(self._group))
            if value is not None:
                yield value


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def defined(description: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Give the name and the regular expression of each metric that a described job has."""
    found = description.get("AlgorithmSpecification", {}).get("MetricDefinitions", ())
    return [(each["Name"], each["Regex"]) for each in found]
