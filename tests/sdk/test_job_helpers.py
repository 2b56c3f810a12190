"""What a job's owner looks at: its metrics as a table and a picture, and its model's folder."""

import subprocess
import sys

import pytest
from fakes.sagemaker_jobs import started

from scriptmode import DataError, Estimator, MissingPackageError, SpecError
from scriptmode.results.metrics import Metrics
from scriptmode.testing import FakeSageMaker, Life

SCRIPT = """
import os, pathlib
for step, loss in enumerate((2.5, 1.25, 0.5)):
    print(f"loss={loss}", flush=True)
    if step:
        print(f"accuracy={step / 4}", flush=True)
pathlib.Path(os.environ["SM_MODEL_DIR"], "weights.txt").write_text("3")
"""
DEFINITIONS = [{"Name": name, "Regex": f"{name}=([0-9.]+)"} for name in ("loss", "accuracy")]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    (folder / "train.py").write_text(SCRIPT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCRIPTMODE_DATA_DIR", str(folder / "data"))
        estimator = Estimator(
            entry_point=str(folder / "train.py"), instance_type="local_process", metric_definitions=DEFINITIONS
        )
        job = estimator.fit(wait=False)
        job.wait(timeout=60)
        yield job


def test_metrics_are_rows_and_a_table_with_a_column_for_each(trained):
    metrics = trained.metrics()
    assert metrics[0] == {"metric_name": "loss", "value": 2.5, "timestamp": None, "host": "algo-1"}
    assert (metrics.names, metrics.values("accuracy")) == (["loss", "accuracy"], [0.25, 0.5])
    assert metrics.columns() == ["#", "loss", "accuracy"]
    assert metrics.lines() == [[1, 2.5, 0.25], [2, 1.25, 0.5], [3, 0.5, None]]
    assert [line.split() for line in metrics.table().splitlines()][-1] == ["3", "0.5"]


def test_a_notebook_shows_metrics_as_a_table_whatever_they_are_called():
    shown = Metrics([{"metric_name": "<b>&", "value": 0.5, "timestamp": None}])._repr_html_()
    assert "<th>&lt;b&gt;&amp;</th>" in shown
    assert shown.count("<tr>") == 2
    assert "<td>0.5</td>" in shown


def test_a_job_names_its_hosts(trained):
    assert trained.hosts == ["algo-1"]
    assert started(Life.completed(), instance_count=3)[1].hosts == ["algo-1", "algo-2", "algo-3"]


def of_hosts(name, *values):
    return [{"metric_name": name, "value": value, "timestamp": None, "host": host} for host, value in values]


BETWEEN = [("algo-2", 9.0), ("algo-10", 7.0), ("algo-1", 2.0), ("algo-1", 1.0), ("algo-2", 8.0)]


def test_values_of_several_hosts_stand_on_lines_of_their_own():
    metrics = Metrics([*of_hosts("loss", *BETWEEN), *of_hosts("accuracy", ("algo-1", 0.5))])
    assert metrics.hosts == ["algo-1", "algo-2", "algo-10"]
    assert metrics.columns() == ["#", "host", "loss", "accuracy"]
    assert metrics.lines() == [
        [1, "algo-1", 2.0, 0.5],
        [1, "algo-2", 9.0, None],
        [1, "algo-10", 7.0, None],
        [2, "algo-1", 1.0, None],
        [2, "algo-2", 8.0, None],
    ]
    assert metrics.values("loss") == [9.0, 7.0, 2.0, 1.0, 8.0]
    assert metrics.values("loss", host="algo-2") == [9.0, 8.0]
    with pytest.raises(SpecError, match="no values of metric 'loss' of a host 'algo-3'; did you mean 'algo-"):
        metrics.values("loss", host="algo-3")
    with pytest.raises(SpecError, match="no values of metric 'accuracy' of a host 'algo-2'; did you mean 'algo-1'"):
        metrics.values("accuracy", host="algo-2")


@pytest.mark.slow
def test_each_host_has_a_line_of_its_own_in_a_picture():
    (axes,) = Metrics(of_hosts("loss", *BETWEEN)).plot().axes
    drawn = [(line.get_label(), list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]
    assert drawn == [("algo-1", [1, 2], [2.0, 1.0]), ("algo-2", [1, 2], [9.0, 8.0]), ("algo-10", [1], [7.0])]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["algo-1", "algo-2", "algo-10"]


def test_values_with_times_are_lined_up_by_them():
    _, job = started(Life.completed(metrics={"loss": [(10, 2.0), (70, 1.0)], "rate": [(70, 9.0)]}))
    job.wait()
    metrics = job.metrics()
    assert metrics.columns()[0] == "time"
    assert [line[1:] for line in metrics.lines()] == [[2.0, None], [1.0, 9.0]]


def test_a_job_without_metrics_has_an_empty_table_and_says_how_to_get_one():
    assert Metrics().table().startswith("no values of metrics; define what to find in the log: metric_definitions")
    with pytest.raises(DataError, match="metric_definitions="):
        Metrics().plot()


@pytest.mark.slow  # draws with Matplotlib
def test_metrics_are_drawn_one_below_the_other(trained):
    figure = trained.plot()
    assert [axes.get_ylabel() for axes in figure.axes] == ["loss", "accuracy"]
    assert list(figure.axes[0].lines[0].get_ydata()) == [2.5, 1.25, 0.5]
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert len(trained.plot("accuracy").axes) == 1
    with pytest.raises(SpecError, match="no values of a metric 'los'; did you mean 'loss'"):
        trained.plot("los")


@pytest.mark.parametrize(("package", "call"), [("matplotlib", "plot()"), ("pandas", "to_pandas()")])
def test_what_is_not_installed_is_named_with_how_to_have_it(package, call):
    program = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from scriptmode import MissingPackageError\nfrom scriptmode.results.metrics import Metrics\n"
        "try:\n    Metrics([{'metric_name': 'a', 'value': 1.0, 'timestamp': None}])." + call + "\n"
        "except MissingPackageError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert f"pip install {package}" in said
    assert issubclass(MissingPackageError, ImportError)


def test_metrics_become_a_frame_only_when_asked(monkeypatch):
    class Frames:
        @staticmethod
        def DataFrame(rows, columns):  # noqa: N802 - pandas' own name
            return rows, columns

    monkeypatch.setitem(sys.modules, "pandas", Frames)
    row = {"metric_name": "a", "value": 1.0, "timestamp": None}
    assert Metrics([row]).to_pandas() == ([row], ["metric_name", "value", "timestamp", "host"])


def test_the_model_is_a_folder_that_is_fetched_once(trained):
    folder = trained.model
    assert (folder / "weights.txt").read_text() == "3"
    (folder / "mine.txt").touch()
    assert trained.model == folder
    assert (folder / "mine.txt").exists()


def test_a_job_without_a_model_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path))
    _, job = started(Life.failed("AlgorithmError: boom"))
    with pytest.raises(DataError, match="has no model"):
        _ = job.model


def test_a_model_in_s3_is_a_folder_too_and_that_of_its_own_job(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path))
    folders = []
    for region, content in (("eu-west-1", b"one"), ("us-east-1", b"two")):
        _, job = started(Life.completed(model={"weights.bin": content}), fake=FakeSageMaker(region))
        job.wait()
        folders.append(job.model)
    assert [(folder / "weights.bin").read_bytes() for folder in folders] == [b"one", b"two"]
