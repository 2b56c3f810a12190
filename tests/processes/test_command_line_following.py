"""Jobs that run while ``scriptmode`` looks at them: stopped, out of time, left by Ctrl-C, come back to."""

import json
import re
import signal
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from fakes.command_line import PROGRAM, documents, program
from fakes.processes import until
from fakes.terminal import Terminal

from scriptmode import TrainingJob

#: Runs until it is stopped, or its file is there.
SLEEPS = """
import os, sys, time
print("asleep", flush=True)
while not os.path.exists(os.environ["WAKE"]):
    time.sleep(0.02)
print("awake", flush=True)
"""


@pytest.fixture
def start(own_directory, tmp_path, no_credentials):
    """Start jobs that sleep until ``wake``, without waiting for them; whatever runs at the end is stopped."""
    Path("sleeps.py").write_text(SLEEPS)

    def started(name, *words):
        done = program(
            "run", "sleeps.py", "--job-name", name, "--env", f"WAKE={tmp_path / 'wake'}", "--no-wait", *words
        )
        assert done.returncode == 0, done.stderr
        return done

    yield started
    for job in TrainingJob.list("local"):
        made = TrainingJob.attach(job["TrainingJobName"], platform="local")
        made.stop()
        until(lambda made=made: made.ended)


def asleep(name):
    """Wait until the script of a job runs; give the job."""
    job = TrainingJob.attach(name, platform="local")
    until(lambda: any(event.message == "asleep" for event in job.logs()))
    return job


def test_with_no_wait_stdout_contains_only_the_name_of_the_job(start):
    done = start("first")
    assert done.stdout == "first\n"
    assert "follow it: scriptmode logs -f first" in done.stderr
    assert json.loads(start("second", "--json").stdout)["TrainingJobName"] == "second"


def test_several_jobs_are_stopped_and_an_unknown_one_is_reported(start):
    start("first")
    start("second")
    asleep("first")
    asleep("second")
    done = program("stop", "first", "nowhere", "second", "--wait", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == [{"job": "first", "status": "Stopped"}, {"job": "second", "status": "Stopped"}]
    assert "no training job named 'nowhere'" in documents(done.stderr)[0]["message"]
    again = program("stop", "first")
    assert (again.returncode, again.stdout) == (0, "training job first has already ended: Stopped\n")
    assert program("logs", "-f", "first").returncode == 143


def test_a_job_that_exceeds_its_time_limit_ends_the_command_with_124(start):
    # Long enough for the script to print its line on a busy machine.
    start("short", "--max-run", "4")
    done = program("logs", "-f", "--last", "--plain")
    assert done.returncode == 124
    assert "ran longer than max_run (4 s)" in done.stderr
    assert "algo-1 | asleep" in done.stdout
    (advised,) = re.findall(r"again: +scriptmode (rerun short --max-run 8) \(", done.stderr)
    said = json.loads(program(*advised.split(), "--job-name", "longer", "--no-wait", "--json").stdout)
    assert said["StoppingCondition"] == {"MaxRuntimeInSeconds": 8}
    refused = program("rerun", "short", "--max-wait", "9")
    assert (refused.returncode, refused.stderr.endswith("(--max-wait)\n")) == (2, True)


def interrupted(*words, columns=80):
    """Follow a job in a terminal, and press Ctrl-C; return the command's exit code and what it wrote."""
    with closing(Terminal(columns, 24, ["setsid", "--ctty", PROGRAM, *words], {"TERM": "dumb"})) as terminal:
        until(lambda: (terminal.read(), "asleep" in terminal.text())[1])
        terminal.type("\x03")
        return terminal.wait(), terminal.text()


def test_ctrl_c_leaves_the_job_running_and_prints_how_to_follow_it(start):
    start("first")
    job = asleep("first")
    for words in (["--tail", "3"], ["--json"]):
        code, seen = interrupted("logs", "-f", *words, "first")
        assert code == 130
        assert "is still running" in seen
        assert "scriptmode logs -f first" in seen
        assert "Traceback" not in seen
        assert job.status == "InProgress"
    _, seen = interrupted("logs", "-f", "first", columns=50)
    # Commands are not broken within words.
    assert seen[seen.index("Training job first") :].splitlines() == [
        "Training job first is still running. Follow it",
        "again: scriptmode logs -f first. Stop it:",
        "scriptmode stop first",
    ]


def test_a_reader_that_leaves_ends_the_command_without_a_message(start, tmp_path):
    start("first")
    asleep("first")
    command = [PROGRAM, "logs", "-f", "first", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert documents(process.stdout.readline())[0]["host"] == "algo-1"
        process.stdout.close()
        (tmp_path / "wake").touch()
        assert process.wait(timeout=600) == 1
        assert process.stderr.read() == ""


def test_a_write_error_prints_once_that_the_new_job_is_still_running(start, tmp_path):
    start("first")
    with Path("/dev/full").open("w") as full:
        command = [PROGRAM, "rerun", "first", "--job-name", "second"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=600)
    assert (done.returncode, done.stderr.count("second is still running")) == (1, 1)


def test_with_json_ctrl_c_in_run_is_one_json_object(start, tmp_path):
    command = [PROGRAM, "run", "sleeps.py", "--job-name", "third", "--env", f"WAKE={tmp_path / 'wake'}", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        until(lambda: any(job["TrainingJobName"] == "third" for job in TrainingJob.list("local")))
        asleep("third")
        process.send_signal(signal.SIGINT)
        assert (process.wait(timeout=600), process.stdout.read()) == (130, "")
        (said,) = documents(process.stderr.read())
    assert said["job"] == "third"
    assert "is still running" in said["message"]
