"""``job.tensorboard()``: a real TensorBoard over HTTP, on what real jobs of this machine wrote."""

import json
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from fakes.processes import processes_naming, until
from fakes.sagemaker_jobs import started

from scriptmode import DataError, Estimator, MissingPackageError, PlatformError, SpecError
from scriptmode.testing import Life

pytestmark = [pytest.mark.tf, pytest.mark.slow]

#: Writes scalars as tf.summary does, without TensorFlow; goes on when it is told to.
SCRIPT = """
import os, pathlib, time
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

writer = EventFileWriter(os.environ["SM_OUTPUT_DATA_DIR"] + "/logs")

def write(step, value):
    summary = Summary(value=[Summary.Value(tag="loss", simple_value=value)])
    writer.add_event(Event(wall_time=1000.0 + step, step=step, summary=summary))
    writer.flush()

write(1, 0.5)
print("wrote", flush=True)
while not pathlib.Path(os.environ["GO_ON"]).exists():
    time.sleep(0.05)
write(2, 0.25)
writer.close()
"""


def ask(url, path):
    with urllib.request.urlopen(f"{url.rstrip('/')}/{path}", timeout=600) as answer:
        return json.load(answer)


def values(url):
    """Every run's scalars of the loss, by step."""
    tags = ask(url, "data/plugin/scalars/tags")
    found = {}
    for run in tags:
        rows = ask(url, f"data/plugin/scalars/scalars?run={urllib.parse.quote(run)}&tag=loss")
        found[run] = {step: value for _, step, value in rows}
    return found


@pytest.fixture
def fit(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    jobs = []

    def start(script, **arguments):
        (tmp_path / "train.py").write_text(script)
        estimator = Estimator(entry_point=str(tmp_path / "train.py"), instance_type="local_process", **arguments)
        jobs.append(estimator.fit(wait=False))
        return jobs[-1]

    yield start
    for job in jobs:
        job.stop()
        until(lambda job=job: job.ended)


def test_a_running_job_is_shown_as_it_goes_on_and_after_its_end(fit, tmp_path):
    job = fit(SCRIPT, environment={"GO_ON": str(tmp_path / "go on")})
    until(lambda: "wrote" in [event.message for event in job.logs()])
    with job.tensorboard() as board:
        run = "algo-1/data/logs"
        assert values(board.url) == {run: {1: 0.5}}
        assert f'src="{board.url}"' in board._repr_html_()
        port = urllib.parse.urlsplit(board.url).port
        with pytest.raises(PlatformError, match=f"TensorBoard ended with exit code.*{port}.*in use"):
            job.tensorboard(port=port)
        (tmp_path / "go on").touch()
        job.wait(timeout=600)
        # The host's folder goes with the job; what was shown stays, and the last of it comes.
        until(lambda: values(board.url) == {run: {1: 0.5, 2: 0.25}})
    with pytest.raises(urllib.error.URLError):
        ask(board.url, "data/runs")
    assert not board.folder.exists()


def test_a_tensorboard_whose_setuptools_is_too_new_for_it_says_which_to_have(fit, tmp_path, monkeypatch):
    (tmp_path / "go on").touch()
    job = fit(SCRIPT, environment={"GO_ON": str(tmp_path / "go on")})
    job.wait(timeout=600)
    # As if there were none.
    (tmp_path / "pkg_resources.py").write_text("raise ModuleNotFoundError(\"No module named 'pkg_resources'\")")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(PlatformError, match="No module named 'pkg_resources'; try: pip install 'setuptools<81'"):
        job.tensorboard()


def test_tensorboard_ends_with_the_process_that_started_it_however_that_ends(fit, tmp_path):
    (tmp_path / "go on").touch()
    job = fit(SCRIPT, environment={"GO_ON": str(tmp_path / "go on")})
    job.wait(timeout=600)
    program = (
        "import sys; from scriptmode import TrainingJob\nboard = TrainingJob.attach(sys.argv[1]).tensorboard()\n"
        "print(board.url, board.folder, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, job.name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        url, _, folder = owner.stdout.readline().strip().partition(" ")
        # Of a job that ended it shows what is in its output.
        assert values(url) == {"data/logs": {1: 0.5, 2: 0.25}}
        assert processes_naming(folder)
        owner.kill()
    until(lambda: not processes_naming(folder))
    until(lambda: not Path(folder).parent.exists())


def test_a_job_without_event_files_says_where_to_write_them(fit, monkeypatch):
    job = fit("import time; time.sleep(600)")
    for port in (0, 70000, "6006", True):
        with pytest.raises(SpecError, match="give a number from 1 to 65535, or leave it out"):
            job.tensorboard(port=port)
    with pytest.raises(DataError, match="has written no event files yet.*call again"):
        job.tensorboard()
    job.stop()
    until(lambda: job.ended)
    with pytest.raises(DataError, match="is Stopped and left no event files.*SM_OUTPUT_DATA_DIR"):
        job.tensorboard()
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingPackageError, match="pip install tensorboard"):
        job.tensorboard()


def test_a_running_job_of_amazon_sagemaker_is_shown_after_its_end():
    _, job = started(Life.completed())
    with pytest.raises(DataError, match="on Amazon SageMaker when the job ended$"):
        job.tensorboard()
