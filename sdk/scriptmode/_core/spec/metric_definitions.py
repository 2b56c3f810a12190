"""Metric definitions: regular expressions that find values in a job's log lines. Pure."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from scriptmode._core.text.messages import Problem, problem_of
from scriptmode.errors import DataError
from scriptmode_runtime._terminal_line import last_frame, plain_text

#: Seconds for one line; what takes longer backtracks, as `(a|aa)+$` does, and would do so for years.
LINE_SECONDS = 1.0
#: Seconds of a line that is slow, and how many such lines a metric may have.
SLOW_SECONDS, SLOW_LINES = 0.1, 20
_EXAMPLE = "loss=([0-9.]+)"
#: ``step 7``, ``global_step=7``, ``"iteration": 7``, ``Epoch 3/12``, ``epoch: [3]``; not ``steps=7``, ``step=0.5``,
#: ``bytes/step=7``.
_POSITION = re.compile(
    r"(?<![A-Za-z/])(?:global_)?(?P<unit>step|iteration|iter|epoch)[\"']?\s{0,2}[=:#]?\s{0,2}[\[(]?(?P<number>\d{1,15})\b(?!\.\d)",
    re.IGNORECASE,
)
#: What Keras prints alone on a line, before the values of that epoch.
_HEADING = re.compile(r"Epoch (\d{1,15})/\d+\s*$")
#: Characters of a line in which a step and an epoch are looked for.
_SEARCHED = 4096

#: Metrics that a name stands for. Keras prints ``loss: 0.31 - accuracy: 0.91 - val_loss: 0.35``, in any order.
PRESETS = {
    "keras": tuple(
        (prefix + name, rf"\b{prefix}{name}: (nan|inf|[0-9.e-]+)")
        for prefix in ("", "val_")
        for name in ("loss", "accuracy", "mae", "mse", "auc", "precision", "recall")
    )
}
#: A progress bar of Keras before its end: ``31/128 [===>...]``, ``31/128 ━━━``, ``31/Unknown``, ``- ETA: 0s``.
_RUNNING = re.compile(r"\b(\d+)/(?:Unknown |(?!\1 )\d+ +(?:\[[=>.]+\]|━))|- ETA: ")
#: How the line begins that Keras prints for an epoch or an evaluation, with and without a progress bar; and its items.
_KERAS_LINE = re.compile(r"(?<![\w./])(\d+)/\1 (?:\[=+\] |━+ )?(?:- )?[\d:]+s? ")
_KERAS_ITEM = re.compile(r"([^\s:][^:]*): (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|nan)) *")

#: Names of metrics that a log may add, and the characters of one (the most of a service's MetricDefinitions).
_MOST_NAMES, _LONGEST_NAME = 100, 255

_LOG = logging.getLogger("scriptmode")


class Definition:
    """One of a job's MetricDefinitions. Raises `DataError` for an invalid regular expression.

    An expression that takes too long is switched off, and ``problem`` says so: the job's log and its other metrics are
    not affected. Python's ``re`` cannot be interrupted: the ``regex`` package, which has the same syntax, searches.
    """

    def __init__(self, name: str, regex: str) -> None:
        self.name = name
        self.regex = regex
        #: Why the metric is switched off; "" while it is not.
        self.problem = ""
        try:
            self._pattern = re.compile(regex)
        except re.error as error:
            where = "" if error.pos is None else f" at character {error.pos + 1}, {regex[error.pos : error.pos + 20]!r}"
            what = f"metric {name!r}: the regular expression {regex!r} is wrong{where}: {error.msg}"
            raise DataError(what, f"correct it; an example is {_EXAMPLE!r}", argument="metric_definitions") from error
        self._group = 1 if self._pattern.groups else 0
        self._limited: Any = None
        self._slow = 0

    def values(self, line: str) -> Iterator[float]:
        """Yield the values in a line: the first group, else the whole match; text that is not a number is skipped."""
        if self.problem:
            return
        for match in self._in_time(line):
            try:
                value = float(match.group(self._group) or "")
            except ValueError:
                continue
            yield value

    def _in_time(self, line: str) -> Iterable[re.Match[str]]:
        """Return the matches in a line; none, and switch off, where they take too long."""
        if self._limited is None:
            # Not where a definition is only validated: its import takes 30 ms.
            import regex

            self._limited = regex.compile(self.regex)
        with suppress(TimeoutError):
            return list(self._limited.finditer(line, timeout=SLOW_SECONDS))
        self._slow += 1
        if self._slow == SLOW_LINES:
            return self._switch_off(f"{SLOW_LINES} lines took it over {SLOW_SECONDS:g} s each")
        try:
            return list(self._limited.finditer(line, timeout=LINE_SECONDS))
        except TimeoutError:
            return self._switch_off(f"a line of {len(line):,} characters took it over {LINE_SECONDS:g} s")

    def _switch_off(self, why: str) -> list[re.Match[str]]:
        self.problem = (
            f"metric {self.name!r} is switched off: {why}; its Regex {self.regex!r} backtracks: correct it, so that "
            "no two parts of it match the same characters"
        )
        return []


class MetricFinder:
    """All definitions of a job's metrics: what they find in a line of its log.

    Values are found in the last frame of a line. The definitions of Keras's preset find none in a progress bar that was
    interrupted: each epoch has one value. Beside them every other metric that Keras prints has its printed name.
    """

    def __init__(self, definitions: Sequence[Definition]) -> None:
        self.definitions = definitions
        self._names = {metric.name for metric in definitions}
        self._own = [metric for metric in definitions if (metric.name, metric.regex) not in PRESETS["keras"]]
        self._added: set[str] = set()
        # One of them may be the objective of a tuning job, which is looked for alone.
        self._is_keras = len(definitions) - len(self._own) > 1

    def find(self, line: str) -> Iterator[tuple[str, float]]:
        """Yield the names and values of metrics in a line that has ended."""
        frame = last_frame(line)
        if _RUNNING.search(plain_text(frame)):
            # Behind the bar is what a callback of the user printed.
            yield from _values(self._own, frame)
        else:
            yield from self.find_in_frame(frame)

    def find_in_frame(self, frame: str) -> Iterator[tuple[str, float]]:
        """Yield the names and values of metrics in a frame of a line, which may be written still."""
        yield from _values(self.definitions, frame)
        if self._is_keras and (match := _KERAS_LINE.search(text := plain_text(frame))):
            for item in map(_KERAS_ITEM.fullmatch, text[match.end() :].removeprefix("- ").split(" - ")):
                if item and item[1] not in self._names and self._admits(item[1]):
                    yield item[1], float(item[2])

    def _admits(self, name: str) -> bool:
        """Return whether a name that the log has is that of a metric: any line of a script may have one."""
        if len(self._added) < _MOST_NAMES and len(name) <= _LONGEST_NAME:
            self._added.add(name)
        return name in self._added


def _values(definitions: Iterable[Definition], frame: str) -> Iterator[tuple[str, float]]:
    for metric in definitions:
        for value in metric.values(frame):
            yield metric.name, value


class LogPositions:
    """The steps and the epochs that lines name; without an epoch, that of Keras's last heading above on that host."""

    def __init__(self) -> None:
        self._headings: dict[str, int] = {}

    def read_heading(self, host: str, line: str) -> None:
        """Keep the epoch of a line that is a heading."""
        if heading := _HEADING.match(line):
            self._headings[host] = int(heading[1])

    def find(self, host: str, line: str) -> tuple[int | None, int | None]:
        """Return the step and the epoch of the values in a line."""
        named: dict[bool, int] = {}
        for match in _POSITION.finditer(last_frame(line)[:_SEARCHED]):
            named.setdefault(match["unit"].lower() == "epoch", int(match["number"]))
        return named.get(False), named.get(True, self._headings.get(host))


def metric_problem(name: str, regex: str) -> Problem | None:
    """Return why a metric can have no value: its expression is wrong, or matches no number and has no group."""
    try:
        Definition(name, regex)
    except DataError as error:
        return problem_of(error)
    if re.compile(regex).groups or not _matches_text(regex):
        return None
    what = f"metric {name!r}: the regular expression {regex!r} has no group, and what it matches is not a number"
    return Problem(what, f"put the number into parentheses; an example is {_EXAMPLE!r}", "metric_definitions")


def _matches_text(regex: str) -> bool:
    """Return whether each match of an expression surely has a character that no number has."""
    if "|" in regex:
        return False
    # Without escapes, sets of characters and what may be left out.
    rest = re.sub(r"\\.|\[\^?\]?[^\]]*\]|\(\?[^)]*\)|.(?:[*?]|\{0?,)", "", regex)
    return re.search(r"[^\W\dinfatyeINFATYE_]|[=:;%/,<>]", rest) is not None


def warn_of_slow_regex(definitions: Iterable[Definition]) -> None:
    """Log which metrics were switched off."""
    for metric in definitions:
        if metric.problem:
            _LOG.warning("%s", metric.problem)
