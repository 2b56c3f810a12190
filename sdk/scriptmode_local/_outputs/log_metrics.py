"""A job's metrics, parsed from its log lines as the service parses them in CloudWatch. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode._core.spec.metric_definitions import Definition, LogPositions, MetricFinder, warn_of_slow_regex
from scriptmode._core.spec.service_values import LogEvent, Metric
from scriptmode.errors import DataError

if TYPE_CHECKING:
    from scriptmode._core.spec.training_job import Algorithm


def last_value(text: str, definitions: Iterable[tuple[str, str]]) -> Metric | None:
    """Return the last value in a part of a log, of the first metric that has one; None without any."""
    for name, regex in definitions:
        with suppress(DataError):
            finder = MetricFinder([Definition(name, regex)])
            values = (list(finder.find(line)) for line in reversed(text.split("\n")))
            if pairs := next(filter(None, values), None):
                return Metric(*pairs[-1])
    return None


def parse_metrics(events: Iterable[LogEvent], algorithm: Algorithm) -> list[Metric]:
    """Return every value that a metric's regular expression finds, metric by metric, in the order of the log.

    Logs a warning for an expression that takes too long. Raises `DataError` for an invalid regular expression.
    """
    finder = MetricFinder([Definition(name, regex) for name, regex in algorithm.metric_definitions])
    if not finder.definitions:
        return []
    values: dict[str, list[Metric]] = {definition.name: [] for definition in finder.definitions}
    positions = LogPositions()
    for event in events:
        positions.read_heading(event.host, event.message)
        if pairs := list(finder.find(event.message)):
            step, epoch = positions.find(event.host, event.message)
            for name, value in pairs:
                values.setdefault(name, []).append(Metric(name, value, None, event.host, step, epoch))
    warn_of_slow_regex(finder.definitions)
    return [metric for of_name in values.values() for metric in of_name]
