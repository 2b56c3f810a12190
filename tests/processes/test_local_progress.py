"""How far a local job's data is, and where its logs are."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.local_jobs import LocalJobs, channel
from fakes.processes import until

from scriptmode import JobNotFoundError, TrainingJob, TrainingJobFailed
from scriptmode.platforms.base import ChannelProgress

SIZE = 3_000_000
SCRIPT = """
import os, sys, time
place = os.environ["SM_INPUT_DIR"] + "/data/piped_"
for epoch in range(2):
    with open(place + str(epoch), "rb") as pipe:
        while pipe.read(65536):
            pass
print("read", flush=True)
while not os.path.exists(os.environ["END"]):
    time.sleep(0.02)
if os.environ["SM_CURRENT_HOST"] == "algo-2":
    raise ValueError("it broke")
time.sleep(60)
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """A job of two hosts that staged one channel and read another twice, while it ran; then it fails."""
    folder = tmp_path_factory.mktemp("progress")
    jobs = LocalJobs(folder)
    (folder / "in").mkdir()
    (folder / "in" / "data").write_bytes(b"x" * SIZE)
    uri = f"file://{folder}/in"
    channels = [
        channel("train", uri),
        channel("piped", uri, InputMode="Pipe"),
        channel("unread", uri, InputMode="Pipe"),
    ]
    request = jobs.request(SCRIPT, hosts=2, channels=channels)
    request["Environment"] = {"END": str(folder / "end")}
    jobs.platform.create(request)
    name = request["TrainingJobName"]
    try:
        until(lambda: len([line for line in jobs.lines(name) if line.endswith(": read")]) == 2)
        complete = ChannelProgress("piped", "Pipe", 2 * 2 * SIZE, None, 1)
        until(lambda: complete in jobs.platform.progress(name))
        yield jobs, name, folder / "end"
    finally:
        (folder / "end").touch()
        jobs.close()


def test_hosts_that_run_have_their_resources_and_the_time_since_their_last_output(session):
    jobs, name, _ = session
    job = TrainingJob(name, jobs.platform)
    activity = until(
        lambda: (found := job.activity()) and all(each.cpu_percent is not None for each in found.values()) and found
    )
    assert list(activity) == ["algo-1", "algo-2"]
    assert all(5e6 < each.memory_bytes < 1e9 for each in activity.values())
    log = jobs.job_folder(name).log("algo-2")
    os.utime(log, (time.time() - 100, time.time() - 100))
    silent = job.activity()["algo-2"]
    assert 99 < silent.silent_seconds < 160
    assert "CPU" in job._repr_html_()
    assert "no output for 1 min" in job._repr_html_()
    variables = {**os.environ, "SCRIPTMODE_DATA_DIR": str(jobs.data_dir)}
    command = [str(Path(sys.executable).with_name("scriptmode")), "describe", name]
    text = subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout
    assert re.search(r"\n +algo-2: CPU \d+%, [0-9.]+ MB, no output for 1 min ", text)
    said = json.loads(subprocess.run([*command, "--json"], env=variables, capture_output=True, check=True).stdout)
    assert sorted(said["Activity"]["algo-1"]) == [
        "cpu_percent", "gpu_memory_bytes", "gpu_percent", "line", "memory_bytes", "silent_seconds",
    ]  # fmt: skip


def test_staged_and_streamed_bytes_are_counted_by_channel(session):
    jobs, name, _ = session
    assert jobs.platform.progress(name) == (
        ChannelProgress("train", "File", SIZE, SIZE),
        ChannelProgress("piped", "Pipe", 2 * 2 * SIZE, None, 1),
    )


def test_the_record_is_written_only_when_something_changed(session):
    jobs, name, _ = session
    record = jobs.job_folder(name).path / "progress.json"
    before = record.stat()
    agent = jobs.agent(name).pid
    # Every round of the agent's passes through a wait.
    waits = switches(agent)
    until(lambda: switches(agent) > waits + 25)
    assert os.path.samestat(before, record.stat())


def switches(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))


def test_every_hosts_log_is_where_it_is_said_to_be(session):
    jobs, name, _ = session
    found = jobs.platform.log_locations(name)
    assert list(found) == ["algo-1", "algo-2"]
    for path in found.values():
        assert "read" in Path(path).read_text()


def test_a_failure_names_the_log_of_the_host_that_failed_and_what_to_do(session):
    jobs, name, end = session
    end.touch()
    job = TrainingJob(name, jobs.platform)
    with pytest.raises(TrainingJobFailed) as caught:
        job.wait(timeout=100)
    said = str(caught.value).splitlines()
    assert said[0] == f"training job {name} failed: algo-2, script: exit code 1"
    assert any(line.startswith("ValueError: it broke") for line in said)
    assert said[-3:] == [
        f"  whole log: {jobs.platform.log_locations(name)['algo-2']}",
        f"  log:       scriptmode logs {name} --host algo-2",
        f"  again:     scriptmode rerun {name} (the same source)",
    ]
    card = job._repr_html_()
    assert "algo-2, script: exit code 1" in card
    assert "12.0 MB" in card


def test_what_was_read_is_known_after_the_end_too(session):
    jobs, name, end = session
    end.touch()
    jobs.wait(name)
    assert {each.channel for each in jobs.platform.progress(name)} == {"train", "piped"}


def test_a_job_that_is_not_there_has_neither(session):
    jobs, _, _ = session
    for ask in (jobs.platform.progress, jobs.platform.log_locations):
        with pytest.raises(JobNotFoundError):
            ask("no-such-job")
