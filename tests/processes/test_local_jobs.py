"""A job's life on this machine, with real agents and real hosts."""

import json
import os
import re
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fakes.command_line import program
from fakes.local_jobs import LocalJobs, channel
from fakes.processes import until
from fakes.promptness import soon

from scriptmode import Estimator, TrainingJob
from scriptmode._core.machine.installation import install_command
from scriptmode._core.spec.host_values import ChannelProgress
from scriptmode.errors import JobExistsError, PlatformError


@pytest.mark.prompt
def test_create_returns_before_the_hosts_run(jobs):
    request = jobs.request("pass")
    begun = time.monotonic()
    arn = jobs.platform.create(request)
    soon(time.monotonic() - begun, 2.0)
    assert arn == "arn:aws:sagemaker:us-east-1:000000000000:training-job/job-1"
    assert jobs.platform.describe("job-1").response["TrainingJobArn"] == arn
    jobs.wait("job-1")


@pytest.mark.parametrize("jump", [172_800, -172_800])
def test_a_job_has_its_real_duration_when_the_clock_is_set_meanwhile(jobs, tmp_path, monkeypatch, jump):
    is_set = tmp_path / "set"
    clock = f"import os, time; real = time.time; time.time = lambda: real() + {jump} * os.path.exists({str(is_set)!r})"
    (tmp_path / "sitecustomize.py").write_text(clock)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    script = f"import os, time\nprint('up', flush=True)\nwhile not os.path.exists({str(is_set)!r}): time.sleep(0.01)"
    limits = {"MaxRuntimeInSeconds": 600, "MaxWaitTimeInSeconds": 3600}
    name = jobs.start(script, more={"StoppingCondition": limits, "EnableManagedSpotTraining": True})
    jobs.until_up(name)
    is_set.touch()
    ended = jobs.wait(name)
    assert ended["TrainingJobStatus"] == "Completed"
    assert 0 < ended["TrainingTimeInSeconds"] < 600
    assert ended["TrainingStartTime"] <= ended["TrainingEndTime"] <= ended["LastModifiedTime"]


def test_of_many_clients_with_one_name_exactly_one_gets_the_job(jobs):
    request = jobs.request("pass")

    def create(_):
        try:
            return jobs.platform.create(request)
        except JobExistsError:
            return None

    with ThreadPoolExecutor(4) as pool:
        assert len([arn for arn in pool.map(create, range(8)) if arn]) == 1
    assert jobs.wait("job-1")["TrainingJobStatus"] == "Completed"


def test_secrets_are_readable_by_their_owner_alone(jobs):
    jobs.platform.put_source(b"source", f"file://{jobs.data_dir}/sources/a/source/sourcedir.tar.gz")
    jobs.run("pass")
    jobs.platform.list()
    folders = [
        jobs.data_dir, *jobs.data_dir.iterdir(), *jobs.data_dir.glob("jobs/*"), *jobs.data_dir.glob("sources/**"),
    ]  # fmt: skip
    for folder in filter(Path.is_dir, folders):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
    job = jobs.job_folder("job-1").path
    sources = jobs.data_dir.glob("sources/**/*.tar.gz")
    for file in (job / "job.json", job / "state.json", jobs.data_dir / "ended-jobs.json", *sources):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_a_data_directory_in_the_source_directory_is_not_packed(here, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(here / "data"))
    (here / "train.py").touch()
    estimator = Estimator(entry_point="train.py", source_dir=".", instance_type="local_process", instance_count=1)
    sources = {estimator.fit(logs=False).describe()["HyperParameters"]["sagemaker_submit_directory"] for _ in range(2)}
    assert len(sources) == 1


@pytest.mark.prompt
def test_following_ends_when_the_job_does(jobs):
    name = jobs.start("print('last', end='')")
    lines = [event.message for event in jobs.platform.log_events(name, follow=True)]
    ended = time.time()
    description = jobs.platform.describe(name).response
    assert description["TrainingJobStatus"] == "Completed"
    assert any("last" in line for line in lines)
    soon(ended - description["TrainingEndTime"].timestamp(), 0.5)


def test_an_interpreter_that_is_too_old_is_refused_by_its_version(tmp_path):
    python = tmp_path / "python3.8"
    python.write_text('#!/bin/sh\ncase "$2" in *version_info*) echo scriptmode: python 3 8;; *) exit 1;; esac\n')
    python.chmod(0o755)
    with pytest.raises(PlatformError) as raised:
        LocalJobs(tmp_path, python=python).start("pass")
    assert str(raised.value) == (
        f"{python} cannot run training hosts: it is Python 3.8; give Python 3.9 or later as python=..."
    )


def test_the_hosts_interpreter_is_the_one_given(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    platform = LocalJobs(tmp_path, python=python)
    with pytest.raises(PlatformError, match=rf"scriptmode_runtime.*{re.escape(install_command(python=str(python)))}"):
        platform.start("pass")
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    (site / "runtime.pth").write_text(str(Path(__file__).parents[2] / "entrypoints"))
    name = platform.start("import sys; print('python', sys.executable)")
    assert platform.wait(name)["TrainingJobStatus"] == "Completed"
    assert f"algo-1: python {python}" in platform.lines(name)
    platform.close()


def test_the_client_keeps_no_child_and_no_warning(jobs):
    code = f"""
import gc, os, sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from fakes.local_jobs import LocalJobs
jobs = LocalJobs({str(jobs.folder)!r})
jobs.start("pass")
gc.collect()
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no child")
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("no child\n", "")
    until(lambda: jobs.ended("job-1"))


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_a_caller_without_standard_streams_starts_jobs_as_any(closed, jobs):
    request = jobs.request("print('up')")
    code = (
        "import json, sys; from scriptmode_local import LocalPlatform; "
        "LocalPlatform(data_dir=sys.argv[1]).create(json.loads(sys.argv[2]))"
    )
    words = (sys.executable, "-c", code, str(jobs.data_dir), json.dumps(request))
    subprocess.run(["bash", "-c", f'exec "$@" {closed}', "bash", *words], check=True, timeout=600)
    name = request["TrainingJobName"]
    assert jobs.wait(name)["TrainingJobStatus"] == "Completed"
    assert [line for line in jobs.lines(name) if "up" in line]


READS = """
import os, time
for epoch in range(2):
    with open(os.environ["SM_INPUT_DIR"] + f"/data/piped_{epoch}", "rb") as pipe:
        while pipe.read(65536):
            pass
print("read", flush=True)
while not os.path.exists(os.environ["END"]):
    time.sleep(0.02)
"""


def test_bytes_of_channels_and_the_usage_of_hosts_are_known_while_they_run(jobs, jobs_of_the_command):
    size = 3_000_000
    (jobs.folder / "in").mkdir()
    (jobs.folder / "in" / "data").write_bytes(b"x" * size)
    modes = {"train": {}, "piped": {"InputMode": "Pipe"}, "unread": {"InputMode": "Pipe"}}
    channels = [channel(name, f"file://{jobs.folder}/in", **fields) for name, fields in modes.items()]
    name = jobs.start(READS, hosts=2, channels=channels, more={"Environment": {"END": str(jobs.folder / "end")}})
    jobs.until_up(name, "read")
    progress = (ChannelProgress("train", "File", size, size), ChannelProgress("piped", "Pipe", 2 * 2 * size, None, 1))
    until(lambda: jobs.platform.progress(name) == progress)
    job = TrainingJob(name, jobs.platform)
    until(lambda: [each.cpu_percent is None for each in job.activity().values()] == [False, False])
    os.utime(jobs.job_folder(name).log("algo-2"), (time.time() - 100, time.time() - 100))
    assert 99 < job.activity()["algo-2"].silent_seconds < 160
    assert "no output for 1 min" in job._repr_html_()
    described = program("describe", name).stdout
    assert re.search(r"\n +algo-2: CPU \d+%, [0-9.]+ MB, no output for 1 min ", described)
    assert sorted(json.loads(program("describe", name, "--json").stdout)["Activity"]["algo-1"]) == [
        "cpu_percent", "gpu_memory_bytes", "gpu_percent", "line", "memory_bytes", "place", "silent_seconds",
    ]  # fmt: skip
    (jobs.folder / "end").touch()
    jobs.completed(name)
    assert {each.channel for each in jobs.platform.progress(name)} == {"train", "piped"}
