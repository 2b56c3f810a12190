"""The live view of a job in a notebook: one piece of HTML in a real kernel, redrawn in its place."""

import json
import os
import re
import shutil
import signal
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import nbformat
import pytest
from fakes.processes import processes_naming, until
from nbclient.exceptions import CellExecutionError
from notebooks.execution import _client

pytestmark = pytest.mark.slow
SCRIPT = """
for number in range(5000):
    print(f"line {number}: loss={1 / (1 + number)} <script>alert(1)</script>", flush=number % 100 == 0)
print("long " + "x" * 3000)
"""
START = """
from pathlib import Path
from scriptmode import Estimator
Path("train.py").write_text({script!r})
estimator = Estimator(
    entry_point="train.py", instance_type="local_process", base_job_name="shown",
    metric_definitions=[{{"Name": "loss", "Regex": "loss=([0-9.]+)"}}], max_run=60,
)
"""


@contextmanager
def kernel(*cells):
    """A kernel, and a notebook of these cells that it can execute."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    folder = Path(tempfile.mkdtemp(prefix="live-view-"))
    environment = {**os.environ, "SCRIPTMODE_DATA_DIR": str(folder / "data"), "IPYTHONDIR": str(folder / "ipython")}
    try:
        client = _client(notebook, folder, 60)
        with client.setup_kernel(env=environment):
            yield client
        until(lambda: not processes_naming(str(folder)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def followed():
    """The notebook of a job with 5,000 lines, and how often its view was sent."""
    with kernel(START.format(script=SCRIPT), "job = estimator.fit()", "job") as client:
        sent = []
        counted = client.process_message

        def count(message, cell, cell_index):
            if message["msg_type"] in ("display_data", "update_display_data"):
                sent.append(message["content"]["data"]["text/html"])
            return counted(message, cell, cell_index)

        client.process_message = count
        for index, cell in enumerate(client.nb.cells):
            client.execute_cell(cell, index)
        client.nb.sent = sent
        yield client.nb


def html_of(cell):
    (shown,) = [output for output in cell.outputs if "text/html" in output.get("data", {})]
    return shown["data"]["text/html"]


def test_a_job_of_thousands_of_lines_leaves_one_small_view_that_is_drawn_rarely(followed):
    html = html_of(followed.cells[1])
    assert "Completed" in html
    assert "line 4999" in html
    assert "line 4900" not in html
    assert "the last 20 of 5,00" in html
    assert "x" * 400 in html
    assert "x" * 500 not in html
    assert len(json.dumps(followed)) < 60_000
    assert "".join(output.get("text", "") for output in followed.cells[1].outputs).count("\n") < 5
    assert re.search(r">log of algo-1:</span> \S+/logs/algo-1\.log<", html)
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)" in html
    assert 1 <= len(followed.sent) <= 40
    assert max(map(len, followed.sent)) < 20_000


def test_a_job_is_shown_as_a_card_with_its_metrics(followed):
    card = html_of(followed.cells[2])
    assert "█" in card
    assert "loss" in card
    assert "<script" not in card


def test_an_interrupt_leaves_the_view_as_it_is_and_says_how_to_come_back():
    script = "import time; print('up', flush=True); time.sleep(60)"
    with kernel(START.format(script=script), "job = estimator.fit()", "estimator.latest_training_job.stop()") as client:
        client.execute_cell(client.nb.cells[0], 0)
        interrupt = threading.Thread(target=interrupt_once_up, args=(client,))
        interrupt.start()
        cell = client.nb.cells[1]
        cell.metadata["tags"] = ["raises-exception"]
        client.execute_cell(cell, 1)
        interrupt.join()
        client.execute_cell(client.nb.cells[2], 2)
    assert "Training" in html_of(cell)
    said = "".join(output.get("text", "") for output in cell.outputs)
    assert re.search(r"Training job (\S+) is still running. Follow it again: scriptmode logs -f \1", said)
    assert "or in Python TrainingJob.attach(" in said
    error = cell.outputs[-1]
    assert (error["ename"], error["evalue"]) == ("KeyboardInterrupt", "")


def interrupt_once_up(client):
    until(lambda: any("up" in output.get("data", {}).get("text/plain", "") for output in client.nb.cells[1].outputs))
    os.kill(client.km.provisioner.pid, signal.SIGINT)


def test_a_failure_is_in_the_card_and_below_the_cell():
    script = "def f(n):\n    return 1 / n\nprint('begin')\nf(0)\n"
    with kernel(START.format(script=script), "estimator.fit()", "estimator.latest_training_job") as client:
        for index, cell in enumerate(client.nb.cells):
            with suppress(CellExecutionError):
                client.execute_cell(cell, index)
        _, fitted, card = client.nb.cells
    html = html_of(fitted)
    (error,) = [output for output in fitted.outputs if output.output_type == "error"]
    lines = "\n".join(error.traceback).splitlines()
    assert "ZeroDivisionError: division by zero" in lines
    assert '  File "train.py", line 2, in f' in lines
    # The log with the same traceback is closed.
    assert html.index("ZeroDivisionError") < html.index("<details>") < html.index("algo-1 | ZeroDivisionError")
    assert "ZeroDivisionError" in html_of(card)
    assert "<details>" not in html_of(card)
