"""Which view there is; what a job's card shows; how a failure ends."""

import io

import pytest
from fakes.estimators import estimator
from fakes.platforms import RecordingPlatform
from fakes.sagemaker_jobs import started

from scriptmode import SpecError, TrainingJobFailed, TrainingJobStopped
from scriptmode.display import choose_view, html_card
from scriptmode.display.snapshot import ChannelStatus, HostStatus, JobSnapshot, MetricSummary, Observations
from scriptmode.platforms.base import ChannelProgress
from scriptmode.testing import Life


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("live", "stream", "variables", "which"),
    [
        pytest.param(None, Terminal(), {"TERM": "xterm"}, "terminal", id="a terminal"),
        pytest.param(None, io.StringIO(), {"TERM": "xterm"}, "plain", id="a file"),
        pytest.param(None, Terminal(), {"TERM": "dumb"}, "plain", id="a dumb terminal"),
        pytest.param(None, Terminal(), {}, "plain", id="a terminal without a name"),
        pytest.param(False, Terminal(), {"TERM": "xterm", "SCRIPTMODE_VIEW": "live"}, "plain", id="lines asked for"),
        pytest.param(True, Terminal(), {"TERM": "dumb", "SCRIPTMODE_VIEW": "plain"}, "terminal", id="a view asked for"),
        pytest.param(True, io.StringIO(), {}, "plain", id="a view in a file"),
        pytest.param(None, Terminal(), {"TERM": "xterm", "SCRIPTMODE_VIEW": "plain"}, "plain", id="lines by variable"),
        pytest.param(
            None, Terminal(), {"TERM": "dumb", "SCRIPTMODE_VIEW": "live"}, "terminal", id="a view by variable"
        ),
    ],
)
def test_the_view_depends_on_the_argument_and_the_output(live, stream, variables, which):
    assert choose_view(live, stream, variables) == which


@pytest.mark.parametrize(
    ("live", "variable", "message"),
    [
        (None, "pretty", "SCRIPTMODE_VIEW is 'pretty'; set it to plain or live"),
        ("yes", "", "live is 'yes'; give True, False"),
    ],
)
def test_a_view_that_there_is_not_is_refused_before_a_job_is_started(code, monkeypatch, live, variable, message):
    monkeypatch.setenv("SCRIPTMODE_VIEW", variable)
    platform = RecordingPlatform()
    with pytest.raises(SpecError, match=message):
        estimator(code, platform=platform).fit(live=live)
    assert platform.created == []


def test_a_view_that_there_is_not_is_refused_where_nothing_is_shown(code):
    platform = RecordingPlatform()
    for quiet in ({"logs": False}, {"wait": False}):
        with pytest.raises(SpecError, match="live is 'yes'; give True, False"):
            estimator(code, platform=platform).fit(live="yes", **quiet)
    assert platform.created == []


def test_a_failure_says_how_to_see_its_log_and_how_to_try_again():
    reason = "AlgorithmError: algo-2, rank 3: exit code 1\nTraceback\nValueError: no, exit code: 1"
    _, job = started(Life.failed(reason, logs={"algo-1": [(95, "a")], "algo-2": [(95, "b")]}), instance_count=2)
    with pytest.raises(TrainingJobFailed) as caught:
        job.wait()
    said = str(caught.value)
    assert said.startswith("training job job-1 failed: algo-2, rank 3: exit code 1\nTraceback\nValueError: no\n")
    whole, log, again = (line.split(":", 1)[1].strip() for line in said.splitlines()[-3:])
    assert whole.startswith("CloudWatch log group /aws/sagemaker/TrainingJobs, stream job-1/algo-2")
    assert (log, again) == ("scriptmode logs job-1 --host algo-2", "scriptmode rerun job-1")
    assert caught.value.reason == reason


def test_a_failure_is_shown_without_the_path_of_its_log():
    fake, job = started(Life.failed("AlgorithmError: boom"))
    fake.disconnect("describe_log_streams", times=100)
    with pytest.raises(TrainingJobFailed, match="boom") as caught:
        job.wait()
    assert "whole log" not in str(caught.value)
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
    data = tuple(ChannelStatus(ChannelProgress(f"data-{number}", "File", 1, 2)) for number in range(12))
    metrics = tuple(MetricSummary(f"metric-{number}", 1, 0.5, (0.5,)) for number in range(12))
    hosts = tuple(HostStatus(f"algo-{number}") for number in range(1, 10))
    view = JobSnapshot("job-1", "Failed", observed=Observations(hosts, data, metrics))
    card = html_card.render_card(view, log_locations={f"algo-{number}": f"/logs/{number}" for number in range(1, 9)})
    for said in ("and 5 more channels", "and 5 more metrics", "and 2 more hosts", "and 6 more logs"):
        assert f">{said}<" in card
    assert [card.count(shown) for shown in ("<b>data-", "<b>metric-", "<b>algo-", "whole log of")] == [7, 7, 7, 2]


def test_a_card_of_a_job_that_cannot_be_described_says_why():
    fake, job = started(Life.completed())
    fake.fault("describe_training_job", PermissionError("<odd>"))
    card = job._repr_html_()
    assert "job-1" in card
    assert "&lt;odd&gt;" in card


def test_a_card_of_a_job_with_a_huge_log_does_not_look_through_it(tmp_path):
    log = tmp_path / "algo-1.log"
    with log.open("wb") as file:
        file.truncate(20_000_000)

    class Huge(RecordingPlatform):
        def log_locations(self, name):
            return {"algo-1": str(log)}

        def metrics(self, description):
            raise AssertionError

    platform = Huge(["Completed"], ResourceConfig={"InstanceType": "local_process", "InstanceCount": 1})
    metrics = [{"Name": "loss", "Regex": "loss=(.)"}]
    made = estimator(
        "", platform=platform, entry_point=None, source_dir=None, image_uri="i", metric_definitions=metrics
    )
    card = made.fit(wait=False)._repr_html_()
    assert "the log has 20.0 MB, and was not searched for metrics; job.metrics() searches it" in card


def test_a_card_without_its_metrics_says_why():
    bad = [{"Name": "loss", "Regex": "loss=("}]

    class NoMetrics(RecordingPlatform):
        def metrics(self, description):
            raise SpecError("metric 'loss': it is <wrong>")

    platform = NoMetrics(["Completed"])
    job = estimator(
        "", platform=platform, entry_point=None, source_dir=None, image_uri="i", metric_definitions=bad
    ).fit(wait=False)
    assert "it is &lt;wrong&gt;" in job._repr_html_()
