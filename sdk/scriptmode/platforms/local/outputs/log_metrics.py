"""A job's metrics, parsed from its log lines as the service parses them in CloudWatch. Pure."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode.core.spec.metric_definitions import Definition, MetricFinder, warn_of_slow_regex
from scriptmode.core.spec.service_values import Metric
from scriptmode.core.text.terminal_text import last_frame
from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scriptmode.core.spec.service_values import LogEvent
    from scriptmode.core.spec.training_job import Algorithm

#: ``step 7``, ``global_step=7``, ``"iteration": 7``, ``Epoch 3/12``, ``epoch: [3]``; not ``steps=7``, ``step=0.5``.
_POSITION = re.compile(
    r"(?<![A-Za-z])(?:global_)?(?P<unit>step|iteration|iter|epoch)[\"']?\s{0,2}[=:#]?\s{0,2}[\[(]?(?P<number>\d{1,15})\b(?!\.\d)",
    re.IGNORECASE,
)
#: What Keras prints alone on a line, before the values of that epoch.
_HEADING = re.compile(r"Epoch (\d{1,15})/\d+\s*$")
#: Characters of a line in which a step and an epoch are looked for.
_SEARCHED = 4096


def last_value(text: str, definitions: Iterable[tuple[str, str]]) -> Metric | None:
    """Return the last value in a part of a log, of the first metric that has one; None without any."""
    for name, regex in definitions:
        with suppress(DataError):
            finder = MetricFinder([Definition(name, regex)])
            for line in reversed(text.split("\n")):
                if found := list(finder.find(line)):
                    return Metric(*found[-1])
    return None


def parse_metrics(events: Iterable[LogEvent], algorithm: Algorithm) -> list[Metric]:
    """Return every value that a metric's regular expression finds, metric by metric, in the order of the log.

    A value has the step and the epoch that its line names; without an epoch, that of Keras's last heading above it.

    Logs a warning for an expression that takes too long. Raises `DataError` for an invalid regular expression.
    """
    finder = MetricFinder([Definition(name, regex) for name, regex in algorithm.metric_definitions])
    if not finder.definitions:
        return []
    values: dict[str, list[Metric]] = {each.name: [] for each in finder.definitions}
    headings: dict[str, int] = {}
    for event in events:
        if heading := _HEADING.match(event.message):
            headings[event.host] = int(heading[1])
        if found := list(finder.find(event.message)):
            step, epoch = _position(last_frame(event.message))
            epoch = headings.get(event.host) if epoch is None else epoch
            for name, value in found:
                values.setdefault(name, []).append(Metric(name, value, None, event.host, step, epoch))
    warn_of_slow_regex(finder.definitions)
    return [metric for of_name in values.values() for metric in of_name]


def _position(line: str) -> tuple[int | None, int | None]:
    named: dict[bool, int] = {}
    for match in _POSITION.finditer(line[:_SEARCHED]):
        named.setdefault(match["unit"].lower() == "epoch", int(match["number"]))
    return named.get(False), named.get(True)
