"""What a job's owner looks at: its metrics as a table and a picture, and its model's folder."""

import io
from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from fakes.sagemaker_jobs import started
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from scriptmode import DataError, Estimator, SpecError
from scriptmode._results.metrics import Metrics
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
        job.wait(timeout=600)
        yield job


def test_metrics_are_rows_and_a_table_with_a_column_for_each(trained):
    metrics = trained.metrics()
    assert metrics[0] == {"metric_name": "loss", "value": 2.5, "timestamp": None, "host": "algo-1"}
    assert (metrics.names, metrics.values("accuracy")) == (["loss", "accuracy"], [0.25, 0.5])
    assert metrics.columns() == ["#", "loss", "accuracy"]
    assert metrics.lines() == [[1, 2.5, 0.25], [2, 1.25, 0.5], [3, 0.5, None]]
    assert [line.split() for line in metrics.table().splitlines()][-1] == ["3", "0.5"]


def test_a_notebook_shows_a_summary_of_metrics_whatever_they_are_called():
    rows = [{"metric_name": "<b>&", "value": value, "timestamp": None} for value in (0.5, 0.75, *[0.25] * 478)]
    shown = Metrics(rows)._repr_html_()
    assert "<th>metric</th><th>values</th><th>first</th><th>last</th><th>min</th><th>max</th>" in shown
    assert "<td>&lt;b&gt;&amp;</td><td>480</td><td>0.5</td><td>0.25</td><td>0.25</td><td>0.75</td>" in shown
    assert shown.count("<tr>") == 2
    assert "480 rows; all of them: list(...), .table(), .to_pandas(), .plot()" in shown


def test_at_the_prompt_metrics_are_a_summary_too(trained):
    lines = repr(trained.metrics()).splitlines()
    assert [line.split() for line in lines[:-1]] == [
        ["metric", "values", "first", "last", "min", "max"],
        ["loss", "3", "2.5", "0.5", "0.5", "2.5"],
        ["accuracy", "2", "0.25", "0.5", "0.25", "0.5"],
    ]
    assert lines[-1].startswith("5 rows;")
    assert repr(Metrics()).startswith("<no values of metrics; define")
    assert "no values of metrics; define" in Metrics()._repr_html_()
    with pytest.raises(DataError, match="metric_definitions="):
        Metrics().plot()


def test_the_summary_is_by_host_and_says_what_it_leaves_out():
    metrics = Metrics([row for number in range(9) for row in of_hosts(f"metric-{number}", *BETWEEN)])
    assert [line[:5] for line in metrics.summary()[1:4]] == [
        ["metric-0", "algo-1", 2, 2.0, 1.0],
        ["metric-0", "algo-2", 2, 9.0, 8.0],
        ["metric-0", "algo-10", 1, 7.0, 7.0],
    ]
    assert len(metrics.summary()) == 1 + 27
    assert "and 7 more lines: summary()" in repr(metrics)
    assert metrics._repr_html_().count("<tr>") == 1 + 20


def of_hosts(name, *values):
    return [{"metric_name": name, "value": value, "timestamp": None, "host": host} for host, value in values]


BETWEEN = [("algo-2", 9.0), ("algo-10", 7.0), ("algo-1", 2.0), ("algo-1", 1.0), ("algo-2", 8.0)]


def test_values_of_several_hosts_stand_on_lines_of_their_own():
    metrics = Metrics([*of_hosts("loss", *BETWEEN), *of_hosts("accuracy", ("algo-1", 0.5))])
    assert metrics.hosts == ["algo-1", "algo-2", "algo-10"]
    assert metrics.columns() == ["#", "host", "loss", "accuracy"]
    assert metrics.lines() == [
        [1, "algo-1", 2.0, 0.5], [1, "algo-2", 9.0, None], [1, "algo-10", 7.0, None], [2, "algo-1", 1.0, None],
        [2, "algo-2", 8.0, None],
    ]  # fmt: skip
    assert metrics.values("loss") == [9.0, 7.0, 2.0, 1.0, 8.0]
    assert metrics.values("loss", host="algo-2") == [9.0, 8.0]
    with pytest.raises(SpecError, match="no values of metric 'loss' of a host 'algo-3'; did you mean 'algo-"):
        metrics.values("loss", host="algo-3")
    with pytest.raises(SpecError, match="no values of metric 'accuracy' of a host 'algo-2'; did you mean 'algo-1'"):
        metrics.values("accuracy", host="algo-2")


def drawn(axes):
    return {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines}


@pytest.mark.slow
def test_each_host_has_a_line_of_its_own_in_a_picture_and_all_have_a_mean():
    (axes,) = Metrics(of_hosts("loss", *BETWEEN)).plot().axes
    assert drawn(axes) == {
        "algo-1": ([1, 2], [2.0, 1.0]), "algo-2": ([1, 2], [9.0, 8.0]), "algo-10": ([1], [7.0]),
        "mean of 3 hosts": ([1], [6.0]),
    }  # fmt: skip
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(drawn(axes))
    assert axes.get_xlabel() == "number of the value"


@pytest.mark.slow
def test_of_many_hosts_the_mean_and_the_band_are_drawn():
    (axes,) = Metrics(of_hosts("loss", *((f"algo-{host}", float(host)) for host in range(1, 31)))).plot().axes
    assert drawn(axes) == {"mean of 30 hosts": ([1], [pytest.approx(15.5)])}
    (band,) = axes.collections
    assert (band.get_datalim(axes.transData).ymin, band.get_datalim(axes.transData).ymax) == (1.0, 30.0)


STEP = {"metric_name": "loss", "value": 1.0, "timestamp": None, "host": "algo-1"}
BEGIN = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
ACROSS = {
    "steps": ([{"step": 10, "epoch": 1}, {"step": 20, "epoch": 1}], "step", [10, 20]),
    "steps that begin again in each epoch": ([{"step": 5, "epoch": 1}, {"step": 5, "epoch": 2}], "epoch", [1, 2]),
    "a value without a step": ([{"step": 10}, {}], "number of the value", [1, 2]),
    "times": (
        [{"timestamp": BEGIN}, {"timestamp": BEGIN + timedelta(minutes=30)}],
        "time since the first value (minutes)",
        [0, 30],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "label", "positions"), ACROSS.values(), ids=ACROSS)
def test_a_picture_says_what_stands_from_left_to_right(rows, label, positions):
    (axes,) = Metrics([{**STEP, **row} for row in rows]).plot().axes
    assert axes.get_xlabel() == label
    assert drawn(axes) == {"algo-1": (positions, [1.0, 1.0])}


@pytest.mark.slow
def test_a_picture_is_readable_on_light_and_dark_pages_and_long_names_do_not_overlap():
    names = [f"validation:{'a-long-name-' * 12}{number}" for number in range(2)]
    figure = Metrics([row for name in names for row in of_hosts(name, *BETWEEN)]).plot()
    picture = np.asarray(Image.open(io.BytesIO(figure._repr_png_())))
    assert picture[0, 0, 3] == 0, "the page's own background"
    drawn_on = picture[picture[..., 3] == 255][:, :3].astype(int)
    grey = drawn_on.mean(axis=1)
    assert grey.min() > 60
    assert grey.max() < 200
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    assert boxes[0].y0 >= boxes[1].y1
    assert all(box.x1 <= figure.bbox.x1 + 1 for box in boxes)


def test_values_with_times_are_lined_up_by_them():
    _, job = started(Life.completed(metrics={"loss": [(10, 2.0), (70, 1.0)], "rate": [(70, 9.0)]}))
    job.wait()
    metrics = job.metrics()
    assert metrics.columns()[0] == "time"
    assert [line[1:] for line in metrics.lines()] == [[2.0, None], [1.0, 9.0]]


@pytest.mark.slow  # draws with Matplotlib
def test_metrics_are_drawn_one_below_the_other(trained):
    figure = trained.plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["loss", "accuracy"]
    assert list(figure.axes[0].lines[0].get_ydata()) == [2.5, 1.25, 0.5]
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert len(trained.plot("accuracy").axes) == 1
    with pytest.raises(SpecError, match="no values of a metric 'los'; did you mean 'loss'"):
        trained.plot("los")


def test_the_model_is_a_folder_that_is_fetched_once(trained):
    folder = trained.model
    assert (folder / "weights.txt").read_text() == "3"
    (folder / "mine.txt").touch()
    assert trained.model == folder
    assert (folder / "mine.txt").exists()


def test_a_model_in_s3_is_a_folder_too_and_that_of_its_own_job(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path))
    folders = []
    for region, content in (("eu-west-1", b"one"), ("us-east-1", b"two")):
        _, job = started(Life.completed(model={"weights.bin": content}), fake=FakeSageMaker(region))
        job.wait()
        folders.append(job.model)
    assert [(folder / "weights.bin").read_bytes() for folder in folders] == [b"one", b"two"]
