"""``scriptmode run --watch`` starts a job again when its source is saved."""

import signal
import subprocess

import pytest
from fakes.command_line import PROGRAM, program
from fakes.processes import until

from scriptmode import TrainingJob


@pytest.fixture
def watch(here):
    """Start the command in the background; return what it wrote so far as a function."""
    started = []

    def start(*words):
        with (here.parent / "output").open("w") as output:
            process = subprocess.Popen([PROGRAM, "run", *words, "--watch", "--plain"], stdout=output, stderr=output)
        started.append(process)
        return process, (here.parent / "output").read_text

    yield start
    for process in started:
        process.kill()
        process.wait()


def save(path, text):
    """Save a file as editors do: another file gets its name, so that no start sees a part of it."""
    draft = path.parent.parent / "draft"
    draft.write_text(text)
    draft.replace(path)


def statuses():
    return [job["TrainingJobStatus"] for job in reversed(TrainingJob.list("local"))]


def test_a_running_job_is_stopped_and_another_one_started_when_the_source_is_saved(here, watch):
    script = here / "train.py"
    script.write_text("import time; print('first', flush=True); time.sleep(600)")
    process, output = watch("train.py")
    until(lambda: "algo-1 | first" in output())
    save(script, "print('second')")
    until(lambda: "algo-1 | second" in output())
    assert "-- train.py changed: running again" in output()
    until(lambda: "waiting until a file of the source is saved" in output())
    assert statuses() == ["Stopped", "Completed"]
    save(script, "print('third'")
    until(lambda: "SyntaxError" in output() and output().count("waiting until") == 2)
    script.unlink()
    until(lambda: "entry_point 'train.py' does not exist" in output())
    save(script, "print('fourth')")
    until(lambda: "algo-1 | fourth" in output() and output().count("waiting until") == 4)
    assert statuses() == ["Stopped", "Completed", "Completed"]
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=600) == 130
    assert "Traceback (most recent call last)" not in output()


def test_each_file_of_the_source_directory_counts_but_not_those_that_are_not_packed(here, watch):
    (here / "train.py").write_text("import words; print(words.SAID)")
    (here / "words.py").write_text("SAID = 'before'")
    (here / ".scriptmodeignore").write_text("*.tmp\n")
    _, output = watch("train.py", "--source-dir", str(here))
    until(lambda: "algo-1 | before" in output() and "waiting until" in output())
    (here / "other.tmp").write_text("ignored")
    save(here / "words.py", "SAID = 'after it'")
    until(lambda: "algo-1 | after it" in output())
    assert "-- words.py changed: running again" in output()


def test_an_input_that_is_missing_at_a_later_start_is_reported_and_the_next_save_awaited(here, watch):
    (here / "train.py").write_text("print('first')")
    data = here.parent / "data"
    data.mkdir()
    (data / "part").write_text("x")
    process, output = watch("train.py", "--input", f"train={data}")
    until(lambda: "algo-1 | first" in output() and "waiting until" in output())
    (data / "part").unlink()
    save(here / "train.py", "print('second')")
    until(lambda: output().count("waiting until") == 2)
    assert "there is nothing in it; put files into it" in output()
    (data / "part").write_text("x")
    save(here / "train.py", "print('third')")
    until(lambda: "algo-1 | third" in output())
    assert "algo-1 | second" not in output()
    assert process.poll() is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.py"], "entry_point 'missing.py' does not exist"),
        (["train.py", "--json"], "--watch follows its jobs; leave --json out"),
        (["train.py", "--job-name", "x"], "--watch starts several jobs, but --job-name 'x' is the name of one"),
    ],
)
def test_a_job_that_cannot_be_started_again_is_an_error(here, words, message):
    (here / "train.py").touch()
    done = program("run", *words, "--watch")
    assert done.returncode == 2
    assert message in done.stderr
    assert TrainingJob.list("local") == []
