"""Ctrl-C at every stage of a command ends it with 130 and one sentence, without a traceback."""

import os
import signal
import subprocess
import sys

import pytest
from fakes.processes import until

from scriptmode import TrainingJob

pytestmark = pytest.mark.slow
COMPLETION = {"_SCRIPTMODE_COMPLETE": "bash_complete", "COMP_WORDS": "scriptmode describe ", "COMP_CWORD": "2"}
PROGRAM = "import sys; sys.argv[0] = 'scriptmode'; from scriptmode.__main__ import main; main()"
#: Waits to be interrupted, once it has said that it is there.
WAIT = """
import os, time

def wait():
    open(os.environ["REACHED"], "w").close()
    time.sleep(60)
"""
AT_IMPORT, AT_EXIT = f"{WAIT}\nwait()", f"{WAIT}\nimport atexit\natexit.register(wait)"


@pytest.mark.parametrize(
    ("module", "content", "words", "variables", "said"),
    [
        ("click", AT_IMPORT, "list", {}, "scriptmode: interrupted"),
        ("boto3", AT_IMPORT, "list --platform sagemaker --region us-east-1 --json", {},
         '{"error": "Interrupted", "message": "interrupted", "exit_code": 130}'),
        ("sitecustomize", AT_EXIT, "--version", {}, "scriptmode: interrupted"),
        ("click", AT_IMPORT, "", COMPLETION, ""),
    ],
    ids=["imports", "as JSON", "end", "completion"],
)  # fmt: skip
def test_an_interrupt_ends_the_command_in_one_sentence(tmp_path, module, content, words, variables, said):
    (tmp_path / f"{module}.py").write_text(content)
    reached = tmp_path / "reached"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SCRIPTMODE_")}
    environment = {**kept, **variables, "PYTHONPATH": str(tmp_path), "REACHED": str(reached)}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words.split()],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        until(reached.exists)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=600)
    finally:
        process.kill()
    assert errors.strip() == said
    assert process.returncode == 130


def test_a_command_in_the_background_of_a_shell_ignores_ctrl_c(tmp_path):
    (tmp_path / "click.py").write_text(AT_IMPORT.replace("sleep(60)", "sleep(1)"))
    reached = tmp_path / "reached"
    process = subprocess.Popen(
        ["sh", "-c", 'trap "" INT; exec "$0" -m scriptmode list', sys.executable],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "REACHED": str(reached)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until(reached.exists)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 1
    assert "AttributeError" in errors


#: Presses Ctrl-C twice as soon as an audit event of Python has this text.
PRESS = """
import os, signal, sys
event, text = os.environ.pop("AT").split()

def press(name, arguments):
    global event
    if name == event and text in str(arguments[:2]):
        event = ""
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

if sys.argv[0] == "-c":
    sys.addaudithook(press)
"""
MOMENTS = ("tempfile.mkdtemp .scriptmode-new-", "os.rename jobs/pressed", "subprocess.Popen _system.detached")


def run_and_press(folder, moment):
    """Run a job, and press Ctrl-C at that moment; return the command's exit code and errors."""
    (folder / "train.py").write_text("print('trained')")
    (folder / "sitecustomize.py").write_text(PRESS)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "run", "train.py", "--job-name", "pressed"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder), "AT": moment}, timeout=600,
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("moment", MOMENTS, ids=["draft", "folder", "agent"])
def test_a_job_whose_start_meets_ctrl_c_runs_and_is_named(tmp_path, data_dir, moment):
    code, errors = run_and_press(tmp_path, moment)
    assert code == 130
    assert "Training job pressed is still running. Follow it again: scriptmode logs -f pressed" in errors
    assert "Stop it: scriptmode stop pressed" in errors
    assert "Traceback" not in errors
    assert TrainingJob.attach("pressed").wait()["TrainingJobStatus"] == "Completed"


def test_a_job_that_meets_ctrl_c_before_its_start_does_not_exist(tmp_path, data_dir):
    code, errors = run_and_press(tmp_path, "os.mkdir data/sources")
    assert (code, errors.strip()) == (130, "scriptmode: interrupted")
    assert list(TrainingJob.list("local")) == []
