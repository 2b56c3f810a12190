"""A job's metrics, read from its log lines as the service reads them from CloudWatch. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from scriptmode.errors import DataError
from scriptmode.platforms import Metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scriptmode.platforms import LogEvent


def found_in(events: Iterable[LogEvent], description: Mapping[str, Any]) -> list[Metric]:
    """Give every value that a metric's regular expression finds, metric by metric, in the order of the log.

    The first group is the value, else the whole match; what is no number is passed over. Raises `DataError` for what
    is no regular expression.
    """
    defined = description.get("AlgorithmSpecification", {}).get("MetricDefinitions", ())
    patterns = [(each["Name"], _compiled(each["Name"], each["Regex"])) for each in defined]
    if not patterns:
        return []
    values: dict[str, list[Metric]] = {name: [] for name, _ in patterns}
    for event in events:
        for name, pattern in patterns:
            for match in pattern.finditer(event.message):
                value = _number(match.group(1 if pattern.groups else 0))
                if value is not None:
                    values[name].append(Metric(name, value))
    return [metric for found in values.values() for metric in found]


def _compiled(name: str, regex: str) -> re.Pattern[str]:
    try:
        return re.compile(regex)
    except re.error as error:
        raise DataError(f"metric {name!r}: {regex!r} is no regular expression: {error}; correct its Regex") from error


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None
