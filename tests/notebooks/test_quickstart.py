"""The quickstart, executed as a newcomer does: as it is, to the picture at its end."""

import time
from urllib.parse import unquote, urlparse

import nbformat
import pytest
from notebooks.execution import NOTEBOOKS, executed

pytestmark = [pytest.mark.long, pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def quickstart():
    began = time.monotonic()
    with executed("quickstart") as execution:
        execution.seconds = time.monotonic() - began
        yield execution


def test_the_quickstart_has_nine_cells_and_takes_less_than_three_minutes(quickstart):
    kept = nbformat.read(NOTEBOOKS / "quickstart.ipynb", as_version=4)
    assert len([cell for cell in kept.cells if cell.cell_type == "code"]) == 9
    assert quickstart.seconds < 180


def output_of(quickstart, source):
    """The first output of the cell that has this text, of those with data; else its text."""
    (cell,) = [cell for cell in quickstart.notebook.cells if cell.cell_type == "code" and source in cell.source]
    return next((output.data for output in cell.outputs if "data" in output), None) or cell.outputs[0].text


def test_the_quickstart_shows_plan_card_metrics_figure_and_tensorboard(quickstart):
    assert "algo-1: worker 0" in output_of(quickstart, "estimator.plan(")
    card = output_of(quickstart, "estimator.fit(")["text/html"]
    assert card.count("█") >= 2
    assert "<td>accuracy</td><td>6</td>" in output_of(quickstart, "job.metrics()")["text/html"]
    assert "image/png" in output_of(quickstart, "job.plot()")
    assert "-m tensorboard.main --logdir" in output_of(quickstart, "job.tensorboard()")


def test_the_quickstart_trains_on_two_hosts_and_shows_what_they_say(quickstart):
    assert quickstart.value("job.status") == "Completed"
    said = quickstart.text()
    assert "algo-1" in said
    assert "epoch 1: loss=" in said
    assert quickstart.value("sorted({event.host for event in job.logs()})") == ["algo-1", "algo-2"]


def test_the_model_of_the_quickstart_knows_the_articles(quickstart):
    # Guessing gives 0.10; six epochs of the subset give 0.88.
    assert quickstart.value("accuracy") > 0.78
    model = unquote(urlparse(quickstart.value("job.model_data")).path)
    assert model.startswith(quickstart.value("__import__('os').environ['SCRIPTMODE_DATA_DIR']"))


def test_the_quickstart_ends_in_a_picture_of_its_predictions(quickstart):
    last = [cell for cell in quickstart.notebook.cells if cell.cell_type == "code"][-1]
    assert [output for output in last.outputs if "image/png" in output.get("data", {})]
