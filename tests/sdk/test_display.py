"""Which view there is; what a terminal and a card show of lines, figures and endings."""

import contextlib
import io
import math
import sys

import pytest
from fakes.estimators import estimator
from fakes.platforms import RecordingPlatform
from fakes.sagemaker_jobs import started

from scriptmode import SpecError, TrainingJobFailed, TrainingJobStopped
from scriptmode._core.spec.host_values import ChannelProgress
from scriptmode._core.text import messages
from scriptmode._display import choose_view, formatting, html_card
from scriptmode._display.collector import MAX_POINTS, DownsampledSeries
from scriptmode._display.snapshot import JobSnapshot, MetricSummary, Row
from scriptmode.testing import Life
from scriptmode_runtime._terminal_line import last_frame, render_line


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("live", "stream", "term", "which"),
    [
        pytest.param(None, Terminal(), "xterm", "terminal", id="a terminal"),
        pytest.param(None, io.StringIO(), "xterm", "plain", id="a file"),
        pytest.param(None, Terminal(), "dumb", "plain", id="a dumb terminal"),
        pytest.param(None, Terminal(), "", "plain", id="a terminal without a name"),
        pytest.param(False, Terminal(), "xterm", "plain", id="lines asked for"),
        pytest.param(True, Terminal(), "dumb", "terminal", id="a view asked for"),
        pytest.param(True, io.StringIO(), "", "plain", id="a view in a file"),
    ],
)
def test_the_view_depends_on_the_argument_and_the_output(live, stream, term, which, monkeypatch):
    monkeypatch.setenv("TERM", term)
    with contextlib.redirect_stdout(stream):
        assert choose_view(live) == which


@pytest.mark.parametrize(
    ("process", "option", "host"),
    [("worker", " --host algo-2", "algo-2"), ("rank 3", "", "algo-1")],
    ids=["a process", "a rank, whose output mpirun logs"],
)
def test_a_failure_says_how_to_see_its_log_and_how_to_try_again(process, option, host):
    reason = f"AlgorithmError: algo-2, {process}: exit code 1\nTraceback\nValueError: no, exit code: 1"
    fake, job = started(Life.failed(reason, logs={"algo-1": [(95, "a")], "algo-2": [(95, "b")]}), instance_count=2)
    with pytest.raises(TrainingJobFailed) as caught:
        job.wait()
    said = str(caught.value)
    assert said.startswith(f"training job job-1 failed: algo-2, {process}: exit code 1\nTraceback\nValueError: no\n")
    log, again = (line.split(":", 1)[1].strip() for line in said.splitlines()[-2:])
    where = "CloudWatch log group /aws/sagemaker/TrainingJobs, stream job-1/"
    assert log.startswith(f"scriptmode logs job-1{option} ({where}{host}")
    assert f">scriptmode logs job-1{option}</code>" in job._repr_html_()
    assert again == "scriptmode rerun job-1"
    assert caught.value.reason == reason
    fake.disconnect("describe_log_streams", times=100)
    with pytest.raises(TrainingJobFailed, match="no\n") as caught:
        job.wait()
    assert f"scriptmode logs job-1{option}\n" in str(caught.value)
    assert "scriptmode rerun job-1" in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "scriptmode rerun job-1 (starts from the beginning: it has no checkpoints)"),
        ({"checkpoint_s3_uri": "s3://b/c"}, "scriptmode rerun job-1 (resumes from the checkpoints in s3://b/c)"),
    ],
)
def test_a_job_that_was_stopped_says_how_to_go_on(arguments, said):
    fake, job = started(Life.completed(), **arguments)
    fake.clock.advance(200)
    job.stop()
    with pytest.raises(TrainingJobStopped) as caught:
        job.wait()
    assert said in str(caught.value)


def test_a_card_shows_a_job_of_any_platform():
    fake, job = started(Life.failed("AlgorithmError: algo-1 <ran> out", logs={"algo-1": [(95, "a")]}))
    assert "Starting" in job._repr_html_()
    fake.clock.advance(10_000)
    card = job._repr_html_()
    assert "Failed" in card
    assert "algo-1 &lt;ran&gt; out" in card
    assert "stream job-1/algo-1" in card
    assert "scriptmode rerun job-1" in card


def test_a_card_says_how_much_it_leaves_out():
    data = tuple(Row(f"data-{number}", "staged") for number in range(12))
    metrics = tuple(MetricSummary(f"metric-{number}", 0.5, (0.5,)) for number in range(12))
    hosts = tuple(Row(f"algo-{number}", "") for number in range(1, 10))
    logs = {f"algo-{number}": f"/logs/{number}" for number in range(1, 9)}
    view = JobSnapshot("job-1", "Failed", hosts=hosts, channels=data, metrics=metrics, log_locations=logs)
    card = html_card.render_card(view)
    for said in ("and 5 more channels", "and 5 more metrics", "and 2 more hosts", "and 6 more logs"):
        assert f">{said}<" in card
    assert [card.count(shown) for shown in ("<b>data-", "<b>metric-", "<b>algo-", ">log of")] == [7, 7, 7, 2]


def test_a_card_of_a_job_that_cannot_be_described_says_why():
    fake, job = started(Life.completed())
    fake.fault("describe_training_job", PermissionError("<odd>"))
    card = job._repr_html_()
    assert "job-1" in card
    assert "&lt;odd&gt;" in card


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (20_000_000, "the log has 20.0 MB, and was not searched for metrics; job.metrics() searches it"),
        (0, "it is &lt;wrong&gt;"),
    ],
    ids=["a huge log", "a wrong metric"],
)
def test_a_card_without_its_metrics_says_why(code, tmp_path, size, message):
    log = tmp_path / "algo-1.log"
    with log.open("wb") as file:
        file.truncate(size)

    class Platform(RecordingPlatform):
        def log_locations(self, name):
            return {"algo-1": str(log)}

        def metrics(self, description):
            raise SpecError("it is <wrong>")

    platform = Platform(["Completed"], ResourceConfig={"InstanceType": "local_process", "InstanceCount": 1})
    made = estimator(code, platform=platform, metric_definitions=[{"Name": "loss", "Regex": "loss=("}])
    assert message in made.fit(wait=False)._repr_html_()


RED, BOLD, RESET = "\x1b[31m", "\x1b[1m", "\x1b[0m"


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        pytest.param("step 1: loss=0.5 ß grün 图 😀", "step 1: loss=0.5 ß grün 图 😀", id="plain"),
        pytest.param(" 10%\r 50%\r100%", "100%", id="progress bar"),
        pytest.param("loading 100%\r\x1b[Kdone", "done", id="erased before"),
        pytest.param("1/10 [=>..]\b\b\b\b\b\b\b\b\b\b\b2/10 [==>.]", "2/10 [==>.]", id="keras's bar"),
        pytest.param("a\x1b[2Jb\x1b[10;10Hc\x1b[5Ad\x1b[?25le\x1bcf\x1b7g", "abcdefg", id="moves, clears, resets"),
        pytest.param("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1bPq#0\x1b\\c", "abc", id="titles, links, pictures"),
        pytest.param("a\x1b]0;never ended", "a", id="a title that does not end"),
        pytest.param("a\x1b[", "a", id="a sequence that does not end"),
        pytest.param("a\x9b2Jb\x00\x07\x7f", "ab", id="single controls"),
        pytest.param("user\u202egnp.exe\u2066", "usergnp.exe", id="turned around"),
        pytest.param("one\u2028two\x85three", "onetwothree", id="line ends of other kinds"),
    ],
)
def test_a_line_is_what_a_terminal_would_show_last(line, seen):
    assert render_line(line) == seen
    assert render_line(line, colours=True) == seen


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        (f"{RED}epoch\t1", f"{RED}epoch\t1"), ("10%\r20%\r\r", "20%"), ("loading 100%\rdone", "done"),
        (f"100%\r{RED}    {RESET}\r", "100%"),
        ("\r1/9 [=>..]" + "\b" * 10 + "\r2/9 [==>.] 4s" + "\b" * 20 + "Traceback", "Traceback"),
        ("1/9 [=>..]" + "\b" * 10 + "2/9", "2/9"), ("x" * 100_000 + "\b" * 100_000 + "y", "y"), ("\r \b", ""),
    ],
)  # fmt: skip
def test_the_last_frame_of_a_line_is_what_was_drawn_last_from_its_start(line, frame):
    assert last_frame(line) == frame


def test_colours_stay_where_they_are_wanted_and_end_with_the_line():
    line = f"{RED}bad{RESET} good {BOLD}{RED}worse"
    assert render_line(line) == "bad good worse"
    assert render_line(line, colours=True) == f"{RED}bad{RESET} good {BOLD}{RED}worse{RESET}"
    assert render_line(f"{RED}xxxx{RESET}\rab\tc", colours=True) == "ab\tc"


@pytest.mark.parametrize("colours", [True, False])
def test_all_of_a_long_line_is_shown_where_it_was_not_redrawn(colours):
    line = f"start\t{RED}" + "x" * 200_000 + "\x1b]0;title\x07 end"
    text = render_line(line, colours=colours)
    assert render_line(f"{line}\r", colours=colours) == text
    assert render_line(f"50%\r{line}\r\r", colours=colours) == text
    assert text.replace(RED, "").replace(RESET, "") == "start\t" + "x" * 200_000 + " end"
    assert (RED in text, text.endswith(RESET)) == (colours, colours)


def test_a_line_that_was_redrawn_for_days_takes_little_time():
    line = "".join(f"\x1b[3{n % 8}m{n} of many\r" for n in range(200_000))
    assert render_line(line, colours=True).endswith(RESET)
    assert len(render_line(line)) < 30


GB = 10**9
FORMATTED = [
    *((messages.format_duration, (seconds,), text) for seconds, text in {
        -1: "0.0 s", 0.44: "0.4 s", 42.9: "42 s", 185: "3 min 5 s", 120: "2 min", 7800: "2 h 10 min", 273600: "3 d 4 h",
    }.items()),
    *((formatting.format_channel, (ChannelProgress("a", mode, *values),), text) for mode, values, text in (
        ("Pipe", (GB, None, 2), "streamed 1.0 GB, epoch 2"), ("File", (1, 4 * GB), "staged 1 bytes of 4.0 GB (0%)"),
        ("File", (7, 7), "staged 7 bytes"),
    )),
    *((formatting.format_number, (value,), text) for value, text in {
        0.123456: "0.1235", 12000.0: "12,000", 1.5e-7: "1.5e-07", math.inf: "inf", math.nan: "nan",
    }.items()),
]  # fmt: skip


@pytest.mark.parametrize(("function", "arguments", "text"), FORMATTED)
def test_times_have_two_units_amounts_name_theirs_once_and_numbers_have_few_digits(function, arguments, text):
    assert function(*arguments) == text


def test_a_sparkline_goes_from_the_least_to_the_most():
    assert formatting.sparkline([0, 1, 2, 7], 10) == "▁▂▃█"
    assert formatting.sparkline([3, 3, 3], 10) == "▁▁▁"
    assert formatting.sparkline([], 10) == ""
    assert len(formatting.sparkline(range(1000), 40)) <= 40
    assert formatting.sparkline(range(63), 8)[-1] == "█"


def kept(values):
    series = DownsampledSeries()
    for value in values:
        series.add(value)
    return series.points()


def test_very_many_values_are_kept_in_little_room():
    points = kept(float(number) for number in range(100_000))
    assert MAX_POINTS / 2 <= len(points) <= MAX_POINTS
    assert list(points) == sorted(points)
    assert (points[0], points[-1]) == (0, 99_999)


def test_values_whose_sum_is_not_a_number_are_drawn():
    most = sys.float_info.max
    assert formatting.sparkline([most, -most, 0], 3) == "\u2588\u2581\u2585"
    assert kept([1.0, math.nan, math.inf, 2.0]) == (1.0, 2.0)
