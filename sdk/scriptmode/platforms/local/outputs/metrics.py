"""A job's metrics, parsed from its log lines as the service parses them in CloudWatch. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode.platforms.base import Metric
from scriptmode.spec.metric_definitions import Definition, warn_of_slow_regex

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scriptmode.platforms.base import LogEvent
    from scriptmode.spec.training_job import Algorithm


def parse_metrics(events: Iterable[LogEvent], algorithm: Algorithm) -> list[Metric]:
    """Return every value that a metric's regular expression finds, metric by metric, in the order of the log.

    Logs a warning for an expression that takes too long. Raises `DataError` for an invalid regular expression.
    """
    definitions = [Definition(name, regex) for name, regex in algorithm.metric_definitions]
    if not definitions:
        return []
    values: dict[str, list[Metric]] = {each.name: [] for each in definitions}
    for event in events:
        for each in definitions:
            values[each.name] += (Metric(each.name, value, host=event.host) for value in each.values(event.message))
    warn_of_slow_regex(definitions)
    return [metric for found in values.values() for metric in found]
