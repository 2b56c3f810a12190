"""What hosts do: their CPU, memory and GPUs, sampled, recorded, and read from the record."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.command_line import invoke
from fakes.local_jobs import request_for
from fakes.nvml import Gpu, Nvml

from scriptmode._core.request.parse import parse_request
from scriptmode._core.spec.host_values import HostActivity
from scriptmode._display import formatting
from scriptmode_cli._program.description_text import render_description
from scriptmode_local import LocalPlatform
from scriptmode_local._agent.cleanup import remove_unneeded_files
from scriptmode_local._agent.usage import UsageSampler
from scriptmode_local._store.host_activity import read_activity, write_usage
from scriptmode_local._store.job_record import Job
from scriptmode_local._store.job_store import JobStore
from scriptmode_local._store.state import starting_state
from scriptmode_local._system.gpus import Gpus, GpuUsage, open_gpus

#: Uses 60 MB, and half a second of CPU time in a child that has ended when it says so.
BUSY = """
import subprocess, sys, time
content = bytearray(60_000_000)
subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.5: pass"])
print("used", flush=True)
time.sleep(3600)
"""


@pytest.fixture
def sleeping():
    with subprocess.Popen(["sleep", "3600"]) as process:
        yield process
        process.kill()


def sampler(pids, gpus=None):
    made = UsageSampler(("algo-1", "algo-2"), lambda host: pids.get(host, 0), path=None)
    made._gpus = gpus
    return made


@pytest.mark.slow
def test_a_hosts_usage_is_that_of_all_its_processes_ended_ones_too():
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as process:
        samples = sampler({"algo-1": process.pid})
        first = samples.sample(0.0)["algo-1"]
        assert process.stdout.readline() == b"used\n"
        second = samples.sample(1.0)["algo-1"]
        process.kill()
    assert first.cpu_percent is None
    assert 40 < second.cpu_percent < 120
    assert 60e6 < second.memory_bytes < 120e6
    assert (second.gpu_percent, second.gpu_memory_bytes) == (None, None)


def test_a_host_that_has_ended_or_is_not_there_yet_has_no_usage(sleeping):
    pids = {"algo-1": sleeping.pid}
    samples = sampler(pids)
    assert list(samples.sample(0.0)) == ["algo-1"]
    pids["algo-2"] = os.getpid()
    assert list(samples.sample(1.0)) == ["algo-1", "algo-2"]
    sleeping.kill()
    sleeping.wait()
    assert list(samples.sample(2.0)) == ["algo-2"]


def test_a_host_uses_the_gpus_that_its_processes_are_on(sleeping):
    one, two = sleeping.pid, os.getpid()
    nvml = Nvml(Gpu(90, {one: 1_000}), Gpu(50, {one: 500, two: 20}), Gpu(0))
    usage = sampler({"algo-1": one}, gpus=Gpus.open(nvml)).sample(0.0)["algo-1"]
    assert (usage.gpu_percent, usage.gpu_memory_bytes) == (70.0, 1_500)
    assert formatting.format_usage(usage).endswith(", GPU 70%, 1.5 kB")


DRIVERS = {
    "idle": (Gpu(0), GpuUsage(0.0, 0)),
    "of another program": (Gpu(30, {1: 10}), GpuUsage(0.0, 0)),
    "of an unknown program": (Gpu(30), GpuUsage(None, None)),
    "of a process that is not visible here": (Gpu(30, {2**22 + 1: 10}), GpuUsage(None, None)),
    "processes unknown": (Gpu(30, None), GpuUsage(None, None)),
    "utilization unknown": (Gpu(None, {os.getpid(): 10}), GpuUsage(None, 10)),
    "memory unknown": (Gpu(30, {os.getpid(): None}), GpuUsage(30.0, None)),
}


@pytest.mark.parametrize(("gpu", "expected"), DRIVERS.values(), ids=DRIVERS)
def test_what_a_driver_does_not_tell_is_unknown(gpu, expected):
    assert Gpus.open(Nvml(gpu)).usage({"algo-1": [os.getpid()]}) == {"algo-1": expected}


def test_without_gpus_or_a_driver_there_are_none():
    assert Gpus.open(Nvml()) is None
    assert Gpus.open(Nvml(Gpu(), works=False)) is None
    assert open_gpus() is None or Path("/dev/nvidia0").exists()


@pytest.fixture
def folder(tmp_path):
    arn = "arn:aws:sagemaker:us-east-1:000000000000:training-job/job-1"
    job = Job(parse_request(request_for("job-1", hosts=2)), arn, "us-east-1", sys.executable, 1.0, {}, {})
    state = starting_state("job-1", arn, time.time()).with_status("Training", time.time())
    with JobStore(tmp_path).create(job, state) as (made, _):
        pass
    for name in ("algo-1", "algo-2"):
        made.log(name).write_text("one\n")
    return made


def test_the_record_is_read_with_the_silence_of_each_running_host(folder):
    usage = HostActivity(cpu_percent=98.6, memory_bytes=7, gpu_percent=5.0, gpu_memory_bytes=6)
    write_usage(folder.usage_file("algo-1"), {"algo-1": usage})
    os.utime(folder.log("algo-1"), (time.time() - 12,) * 2)
    found = read_activity(folder)
    assert list(found) == ["algo-1"]
    assert found["algo-1"].silent_seconds == pytest.approx(12, abs=2)
    assert found["algo-1"].memory_bytes == 7
    assert formatting.format_usage(found["algo-1"]) == "CPU 99%, 7 bytes, GPU 5%, 6 bytes"
    assert found["algo-1"].silence.startswith("no output for 1")
    assert HostActivity(silent_seconds=3.0).silence == ""
    folder.log("algo-2").write_text("one\n\r 10%")
    assert read_activity(folder)["algo-2"] == HostActivity(line="\r 10%")


@pytest.mark.parametrize("content", [b"[", b"null", b"[7]", b'{"algo-1": 7}', b'{"algo-1": {"cpu_percent": "7"}}'])
def test_a_record_that_cannot_be_read_tells_nothing(folder, content):
    record = folder.usage_file("algo-1")
    record.parent.mkdir()
    record.write_bytes(content)
    assert formatting.format_usage(read_activity(folder).get("algo-1", HostActivity())) == ""


def test_an_old_record_and_that_of_an_ended_job_tell_nothing(folder):
    write_usage(folder.usage_file("algo-1"), {"algo-1": HostActivity(cpu_percent=1.0)})
    assert read_activity(folder)
    os.utime(folder.usage_file("algo-1"), (time.time() - 60,) * 2)
    assert read_activity(folder) == {}
    os.utime(folder.usage_file("algo-1"))
    folder.write_state(folder.read_state().with_status("Completed", time.time()))
    folder.log("algo-1").write_text("without an end")
    assert read_activity(folder) == {}


def test_the_place_of_a_host_stays_known_and_a_record_that_cannot_be_read_is_none(folder, tmp_path, monkeypatch):
    folder.write_places({"algo-2": "Slurm job 7, partition gpu, node2"})
    write_usage(folder.usage_file("algo-2"), {"algo-2": HostActivity(cpu_percent=1.0)})
    found = read_activity(folder)["algo-2"]
    assert (found.place, found.cpu_percent) == ("Slurm job 7, partition gpu, node2", 1.0)
    folder.write_state(folder.read_state().with_status("Failed", time.time()))
    assert read_activity(folder) == {"algo-2": HostActivity(place="Slurm job 7, partition gpu, node2")}
    shown = render_description(LocalPlatform(data_dir=tmp_path).describe("job-1"), read_activity(folder))
    assert re.search("^ +algo-2: Slurm job 7, partition gpu, node2$", shown, re.MULTILINE)
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path))
    folder.write_places({"algo-1": "partition gpu, node1", "algo-2": "partition gpu, node2"})
    assert "gpu" not in invoke("list").stdout
    heads, row = invoke("list", "--wide").stdout.splitlines()
    assert (heads.split()[-1], row.split("  ")[-1]) == ("PLACES", "partition gpu, node1; partition gpu, node2")
    assert json.loads(invoke("list", "--wide", "--json").stdout)[0]["Places"] == folder.read_places()
    (folder.path / "places.json").write_text('{"algo-1": 7}')
    assert read_activity(folder) == {}


def test_an_unfinished_record_is_removed_when_the_job_has_ended_but_not_behind_a_link(folder, tmp_path):
    usage = folder.usage_file("").parent
    write_usage(folder.usage_file("algo-1"), {"algo-1": HostActivity(cpu_percent=1.0)})
    (usage / ".scriptmode-new-1").write_text("[")
    remove_unneeded_files(folder, failed=False)
    assert [path.name for path in usage.iterdir()] == ["algo-1.json"]
    other = usage.rename(tmp_path / "other")
    usage.symlink_to(other)
    (other / ".scriptmode-new-1").write_text("of others")
    remove_unneeded_files(folder, failed=False)
    assert (other / ".scriptmode-new-1").exists()
