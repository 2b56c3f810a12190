"""What a v2 notebook reads of a job after `fit`: metrics as a table, paths of artifacts, statuses of rules."""

import sys
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from fakes.estimators import estimator
from fakes.platforms import RecordingPlatform

from scriptmode import MissingPackageError, SpecError
from scriptmode._core.spec.service_values import Metric
from scriptmode._results.analytics import TrainingJobAnalytics
from scriptmode._results.metrics import to_metrics

NOON = datetime(2026, 5, 4, 12, tzinfo=timezone.utc)


@pytest.fixture
def pandas(monkeypatch):
    """A package whose frames are their rows; the columns are those of the SageMaker SDK."""

    def frame(rows, columns):
        assert columns == ["timestamp", "metric_name", "value"]
        return rows

    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=frame))


class Measured(RecordingPlatform):
    """A platform whose jobs have these metrics."""

    def __init__(self, *metrics):
        super().__init__()
        self.found = list(metrics)

    def metrics(self, description):
        return self.found


@pytest.mark.usefixtures("pandas")
def test_a_table_of_metrics_has_seconds_since_the_first_value_of_each(code):
    later = NOON + timedelta(minutes=1)
    platform = Measured(Metric("loss", 0.25, later), Metric("loss", 0.5, NOON), Metric("recall", 0.75, later, "algo-1"))
    made = estimator(code, platform=platform)
    made.fit(wait=False)
    expected = [(0.0, "loss", 0.5), (60.0, "loss", 0.25), (0.0, "recall", 0.75)]
    assert made.training_job_analytics.dataframe() == expected
    assert made.latest_training_job.analytics(metric_names=["recall"]).dataframe() == expected[2:]


@pytest.mark.usefixtures("pandas")
def test_a_metric_without_values_has_no_rows_and_an_unknown_one_is_refused(code):
    definitions = [{"Name": name, "Regex": "x=([0-9]+)"} for name in ("loss", "accuracy")]
    job = estimator(code, platform=Measured(Metric("loss", 0.5)), metric_definitions=definitions).fit(wait=False)
    assert job.analytics(["accuracy"]).dataframe() == []
    with pytest.raises(SpecError, match="no values of a metric 'los'; did you mean 'loss'"):
        job.analytics(["los"]).dataframe()


@pytest.mark.usefixtures("pandas")
def test_values_without_times_are_numbered_on_each_host(code):
    metrics = [Metric("loss", value, None, host) for host in ("algo-1", "algo-2") for value in (0.5, 0.25)]
    found = estimator(code, platform=Measured(*metrics)).fit(wait=False).analytics().dataframe()
    assert found == [(0.0, "loss", 0.5), (1.0, "loss", 0.25)] * 2


@pytest.mark.usefixtures("pandas")
def test_a_table_is_read_again_on_request():
    found = [Metric("loss", 0.5)]
    analytics = TrainingJobAnalytics("job", lambda: to_metrics(found))
    first = analytics.dataframe()
    found.append(Metric("loss", 0.25))
    assert analytics.dataframe() is first
    assert len(analytics.dataframe(force_refresh=True)) == 2
    found.clear()
    analytics.clear_cache()
    assert analytics.dataframe() == []


def test_a_table_is_written_as_csv(monkeypatch):
    written = []
    frame = SimpleNamespace(to_csv=written.append)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda *_, **__: frame))
    TrainingJobAnalytics("job", lambda: to_metrics([])).export_csv("metrics.csv")
    assert written == ["metrics.csv"]


def test_without_pandas_the_table_says_how_to_have_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    missing = r"dataframe\(\) needs pandas, which is not installed; .* -m pip install pandas, or use latest"
    with pytest.raises(MissingPackageError, match=missing):
        TrainingJobAnalytics("job", lambda: to_metrics([])).dataframe()


def test_a_damaged_pandas_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "pandas.py").write_text("raise ImportError('upgrade numpy')")
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingPackageError, match="needs pandas, which cannot be imported: upgrade numpy; "):
        TrainingJobAnalytics("job", lambda: to_metrics([])).dataframe()


def test_one_text_is_not_a_list_of_metrics(code):
    with pytest.raises(SpecError, match="metric_names is one string, 'loss'; give a list of strings"):
        estimator(code).fit(wait=False).analytics("loss")


PATHS = {
    "latest_job_debugger_artifacts_path": ("DebugHookConfig", "debug-output"),
    "latest_job_profiler_artifacts_path": ("ProfilerConfig", "profiler-output"),
    "latest_job_tensorboard_artifacts_path": ("TensorBoardOutputConfig", "tensorboard-output"),
}


@pytest.mark.parametrize("end", ["", "/"])
def test_paths_of_artifacts_are_those_of_the_latest_job(code, end):
    configs = {config: {"S3OutputPath": f"s3://bucket/{config}{end}"} for config, _ in PATHS.values()}
    made = estimator(code, platform=RecordingPlatform(**configs))
    name = made.fit(wait=False).name
    for method, (config, directory) in PATHS.items():
        assert getattr(made, method)() == f"s3://bucket/{config}/{name}/{directory}"


@pytest.mark.parametrize("extra", [{}, {"ProfilerConfig": {"S3OutputPath": "s3://b/p", "DisableProfiler": True}}])
def test_what_is_off_has_no_path(code, extra):
    made = estimator(code, platform=RecordingPlatform(**extra))
    made.fit(wait=False)
    assert [getattr(made, method)() for method in PATHS] == [None] * 3


def test_before_the_first_job_there_are_neither_paths_nor_analytics(code):
    made = estimator(code)
    for method in PATHS:
        with pytest.raises(SpecError, match=rf"latest_training_job is None, and {method}\(\) is about it; call fit"):
            getattr(made, method)()
    with pytest.raises(SpecError, match="latest_training_job is None, and training_job_analytics is about it"):
        _ = made.training_job_analytics


def test_statuses_of_rules_are_those_of_the_description(code):
    debug = {"RuleConfigurationName": "LossNotDecreasing", "RuleEvaluationStatus": "InProgress"}
    profile = {"RuleConfigurationName": "ProfilerReport", "RuleEvaluationStatus": "NoIssuesFound"}
    platform = RecordingPlatform(DebugRuleEvaluationStatuses=[debug], ProfilerRuleEvaluationStatuses=[profile])
    assert estimator(code, platform=platform).fit(wait=False).rule_job_summary() == [debug, profile]
    assert estimator(code).fit(wait=False).rule_job_summary() == []
