"""A metric's regular expression that backtracks is switched off with one warning; the rest goes on."""

import logging
import subprocess
import sys
import time

import pytest

from scriptmode.display.collector import Collector
from scriptmode.platforms.base import LogEvent
from scriptmode.platforms.local.outputs.metrics import parse_metrics
from scriptmode.request.parse import parse_description
from scriptmode.spec.metric_definitions import Definition

CATASTROPHIC = r"loss=(a|aa)+$|x"
LINE = "loss=" + "a" * 80 + "b"
DESCRIPTION = {
    "TrainingJobName": "j",
    "TrainingJobStatus": "InProgress",
    "SecondaryStatus": "Training",
    "AlgorithmSpecification": {
        "MetricDefinitions": [
            {"Name": "bad", "Regex": CATASTROPHIC},
            {"Name": "good", "Regex": "acc=([0-9.]+)"},
            {"Name": "many", "Regex": ".*(acc)=.*?([0-9.]+)"},
        ]
    },
}


@pytest.fixture
def events():
    return [LogEvent("algo-1", f"acc=0.{number} {LINE}") for number in range(100)]


@pytest.mark.slow
def test_a_metric_that_takes_too_long_is_switched_off_and_the_others_are_found(events, caplog):
    began = time.process_time()  # regex measures its limit by it too
    with caplog.at_level(logging.WARNING, "scriptmode"):
        found = parse_metrics(events, parse_description(DESCRIPTION).job.algorithm)
    assert [each.name for each in found] == ["good"] * 100
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == 1
    assert warned[0].startswith("metric 'bad' is switched off: a line of ")
    assert "correct it" in warned[0]
    assert time.process_time() - began < 30


@pytest.mark.slow
def test_the_live_view_tells_it_once(events):
    collector = Collector("j")
    collector.set_description(parse_description(DESCRIPTION))
    for event in events:
        collector.add_event(event)
    assert len(collector.problems) == 1
    assert collector.problems[0].startswith("metric 'bad' is switched off")


@pytest.mark.parametrize(
    "regex",
    [
        r"loss=([0-9.]+)",
        r"(a|b)=(\d+)",
        r"(?:x)?acc: ([0-9]*)",
        r".*loss=(.*?);.*",
        r"(\w+)=([\d.]+)",
        r"(a+)+b",
        r"l(?=o)",
    ],
)
@pytest.mark.parametrize("line", ["loss=0.5; acc: 7 a=3", "", "aaab", "x" * 10_000 + "loss=1.5;", "ünï=1 loss=٣"])
def test_both_engines_find_the_same(regex, line):
    one, other = Definition("m", regex), Definition("m", regex)
    one._is_simple, other._is_simple = False, True
    if regex == "(a+)+b" and len(line) > 100:
        return
    assert list(one.values(line)) == list(other.values(line))


@pytest.mark.parametrize("regex", [r"loss=([0-9.]+)", r"acc: (\d*)", "a", r"val_(?:loss|acc)=(\S+)"])
def test_what_cannot_take_long_needs_no_other_package(regex):
    code = (
        "import sys; from scriptmode.spec.metric_definitions import Definition\n"
        f"list(Definition('m', {regex!r}).values('loss=1'))\n"
        "assert 'regex' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "regex", [r"(a|aa)+$", r"(a*)*b", r"a+a+a+a+a+a+a+b", "a?" * 40 + "a" * 40, r"(.*)*=(.*)*=x", "(a|a)" * 39 + "b"]
)
def test_what_may_take_long_is_limited(regex):
    definition = Definition("m", regex)
    assert not definition._is_simple
    began = time.process_time()
    for _ in range(3):
        list(definition.values("a" * 39 + "c"))
    assert time.process_time() - began < 20
