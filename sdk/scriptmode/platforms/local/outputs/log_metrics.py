"""A job's metrics, parsed from its log lines as the service parses them in CloudWatch. Pure."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode.core.spec.metric_definitions import Definition, warn_of_slow_regex
from scriptmode.core.spec.service_values import Metric
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
            definition = Definition(name, regex)
            for line in reversed(text.split("\n")):
                if values := list(definition.values(line)):
                    return Metric(name, values[-1])
    return None


def parse_metrics(events: Iterable[LogEvent], algorithm: Algorithm) -> list[Metric]:
    """Return every value that a metric's regular expression finds, metric by metric, in the order of the log.

    A value has the step and the epoch that its line names; without an epoch, that of Keras's last heading above it.

    Logs a warning for an expression that takes too long. Raises `DataError` for an invalid regular expression.
    """
    definitions = [Definition(name, regex) for name, regex in algorithm.metric_definitions]
    if not definitions:
        return []
    values: dict[str, list[Metric]] = {each.name: [] for each in definitions}
    headings: dict[str, int] = {}
    for event in events:
        if heading := _HEADING.match(event.message):
            headings[event.host] = int(heading[1])
        for each in definitions:
            if found := list(each.values(event.message)):
                step, epoch = _position(event.message)
                epoch = headings.get(event.host) if epoch is None else epoch
                values[each.name] += (Metric(each.name, value, None, event.host, step, epoch) for value in found)
    warn_of_slow_regex(definitions)
    return [metric for of_name in values.values() for metric in of_name]


def _position(line: str) -> tuple[int | None, int | None]:
    named: dict[bool, int] = {}
    for match in _POSITION.finditer(line[:_SEARCHED]):
        named.setdefault(match["unit"].lower() == "epoch", int(match["number"]))
    return named.get(False), named.get(True)
