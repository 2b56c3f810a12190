"""The ``scriptmode`` command, in processes of its own, on real local jobs."""

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from scriptmode import Estimator

SCRIPTMODE = str(Path(sys.executable).with_name("scriptmode"))


@pytest.fixture
def run(tmp_path, monkeypatch, no_credentials):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))

    def command(*words):
        return subprocess.run(
            [SCRIPTMODE, *words], check=False, capture_output=True, text=True, timeout=60, env=os.environ
        )

    return command


@pytest.fixture
def job(run, tmp_path):
    def fit(program, name):
        (tmp_path / "train.py").write_text(program)
        made = Estimator(entry_point=str(tmp_path / "train.py"), instance_type="local_process")
        return made.fit(wait=False, job_name=name)

    return fit


def test_a_job_is_listed_described_and_its_log_shown(run, job):
    job("print('hello')", "first").wait(timeout=60)
    assert "Completed    first" in run("list").stdout
    assert json.loads(run("describe", "first").stdout)["TrainingJobName"] == "first"
    assert "algo-1 | hello\n" in run("logs", "first").stdout


def test_following_a_failed_job_says_why_and_is_not_0(run, job):
    job("raise SystemExit(3)", "second")
    followed = run("logs", "-f", "second")
    assert followed.returncode == 1
    assert followed.stderr.startswith("scriptmode: training job second failed: AlgorithmError: algo-1")
    assert "Traceback" not in followed.stderr


def test_a_job_is_stopped(run, job):
    started = job("import time; time.sleep(600)", "third")
    assert run("stop", "third").returncode == 0
    assert run("logs", "-f", "third").returncode == 1
    assert started.status == "Stopped"
    again = run("stop", "third")
    assert (again.returncode, again.stdout) == (0, "training job third has ended already: Stopped\n")


@pytest.mark.parametrize("verb", ["describe", "logs", "stop"])
def test_a_job_that_is_nowhere_is_one_line(run, verb):
    said = run(verb, "nowhere")
    assert said.returncode == 1
    assert said.stderr.count("\n") == 1
    assert "no training job named 'nowhere'" in said.stderr
    assert "Amazon SageMaker could not be asked: no AWS region is set" in said.stderr


def test_no_jobs_are_no_error(run):
    listed = run("list")
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "no training jobs" in listed.stderr


def test_jobs_are_listed_by_what_is_asked_in_utc(run, job, monkeypatch):
    monkeypatch.setenv("TZ", "America/New_York")
    job("print('hello')", "first").wait(timeout=60)
    job("print('hello')", "second").wait(timeout=60)
    now = datetime.now(timezone.utc)
    assert [line.split()[-1] for line in run("list", "--limit", "1").stdout.splitlines()] == ["second"]
    assert [line.split()[-1] for line in run("list", "--name", "fir").stdout.splitlines()] == ["first"]
    assert run("list", "--since", "2020-01-31").stdout.count("\n") == 2
    assert (
        run("list", "--since", f"{now + timedelta(days=1):%Y-%m-%d}").stderr
        == "no such training jobs on this machine\n"
    )
    assert run("list", "--status", "Failed").stdout == ""
    shown = datetime.strptime(" ".join(run("list").stdout.split()[:2]), "%Y-%m-%d %H:%M:%S%z")
    assert abs((shown - now).total_seconds()) < 120
    wrong = run("list", "--status", "Done")
    assert (wrong.returncode, wrong.stderr.startswith("scriptmode: status is 'Done'; give one of")) == (1, True)


def test_jobs_of_amazon_sagemaker_are_asked_for_by_name(run):
    listed = run("list", "--platform", "sagemaker")
    assert (listed.returncode, listed.stderr.count("\n")) == (1, 1)
    assert "no AWS region is set" in listed.stderr
