"""What a process may use of its machine, and which programs are there."""

import json
import os
import subprocess
import sys

import pytest
from fakes.host_folders import write_files
from processes.launchers import ENTRYPOINTS

from scriptmode_runtime._host import machine


def write(root, files):
    return str(write_files(root, files))


def limits(folder, quota, period=100_000):
    return {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": f"{period}\n"}


V1, V2 = "sys/fs/cgroup/cpu", "sys/fs/cgroup"


@pytest.mark.parametrize(
    ("files", "granted"),
    [
        pytest.param({}, None, id="no groups at all"),
        pytest.param({f"{V2}/cpu.max": "250000 100000"}, 3, id="rounded up"),
        pytest.param({f"{V2}/cpu.max": "1000 100000"}, 1, id="never none"),
        pytest.param({f"{V2}/cpu.max": "max 100000"}, None, id="no limit"),
        pytest.param({f"{V2}/cpu.max": "half"}, None, id="not understood"),
        pytest.param(limits(V1, 300_000), 3, id="version 1"),
        pytest.param(
            {"proc/self/cgroup": "0::/a/b\n", f"{V2}/a/b/cpu.max": "400000 100000"}, 4, id="of the process's own group"
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/a/b\n", f"{V2}/a/cpu.max": "300000 100000", f"{V2}/a/b/cpu.max": "max 100000"},
            3,
            id="of the group above",
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/a/b\n", f"{V2}/a/cpu.max": "300000 100000", f"{V2}/a/b/cpu.max": "500000 100000"},
            3,
            id="the smallest, above",
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/other\n", f"{V2}/a/cpu.max": "100000 100000"}, None, id="not of another group"
        ),
        pytest.param(
            {"proc/self/cgroup": "4:cpu,cpuacct:/docker/f00\n", **limits(V1, 200_000)}, 2, id="a path only its host has"
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/../../b\n", f"{V2}/cpu.max": "200000 100000"}, 2, id="a path outside the container's part"
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/a b:c\n", f"{V2}/a b:c/cpu.max": "200000 100000"}, 2, id="a name with a blank and a colon"
        ),
    ],
)  # fmt: skip
def test_processors_are_granted_by_every_control_group_above(tmp_path, files, granted):
    assert min(machine._quotas(write(tmp_path, files)), default=None) == granted


def test_a_process_counts_the_processors_it_may_run_on():
    first = min(os.sched_getaffinity(0))
    count = [sys.executable, "-c", "from scriptmode_runtime._host import machine; print(machine.inspect().cpus)"]
    env = {"PYTHONPATH": str(ENTRYPOINTS), "PATH": os.defpath}
    assert int(subprocess.check_output(count, env=env)) <= len(os.sched_getaffinity(0))
    assert int(subprocess.check_output(["taskset", "-c", str(first), *count], env=env)) == 1


@pytest.mark.parametrize(
    ("environ", "gpus"),
    [
        pytest.param({}, 3, id="nothing said"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "0"}, 1, id="one"),
        pytest.param({"CUDA_VISIBLE_DEVICES": ""}, 0, id="empty"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, 0, id="as a scheduler says none"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "0,7,1"}, 1, id="up to one that is not there"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "GPU-8932f937,GPU-1a2b3c4d"}, 2, id="by name"),
        pytest.param({"CUDA_VISIBLE_DEVICES": ",".join(["MIG-1"] * 7)}, 3, id="parts of GPUs"),
        pytest.param({"NVIDIA_VISIBLE_DEVICES": "0"}, 3, id="what a container runtime acted on"),
    ],
)
def test_gpus_are_those_that_cuda_sees(tmp_path, environ, gpus):
    names = ("nvidia0", "nvidia1", "nvidia6", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1")
    root = write(tmp_path, {f"dev/{name}": "" for name in names})
    assert machine.inspect(root, environ).gpus == gpus
    assert machine.inspect(str(tmp_path / "without GPUs"), environ).gpus == 0


def test_neuron_cores_are_counted_over_all_devices(tmp_path):
    folder = "sys/devices/virtual/neuron_device"
    files = {f"{folder}/neuron{number}/core_count": "2\n" for number in range(2)} | {f"{folder}/neuron2/other": "9"}
    assert machine.inspect(write(tmp_path, files)).neurons == 4


def probe(tmp_path, *programs, **variables):
    """Ask an interpreter that has nothing beside it, with a PATH of these programs alone."""
    for name in programs:
        (tmp_path / name).touch(mode=0o755)
    (tmp_path / "python").symlink_to(sys.executable)
    command = [tmp_path / "python", "-m", "scriptmode_runtime._host.probe"]
    paths = {"PATH": str(tmp_path), "PYTHONPATH": str(ENTRYPOINTS), "HOME": str(tmp_path)}
    return json.loads(subprocess.check_output(command, timeout=600, cwd=tmp_path, env={**paths, **variables}))


def test_programs_that_a_job_would_start_are_named_with_their_paths_or_reported_as_missing(tmp_path):
    for name in ("some", "none"):
        (tmp_path / name).mkdir()
    place = tmp_path / "some"
    found = probe(place, "mpirun", "prted", "c++")
    assert found["mpirun"] == {"path": f"{place}/mpirun", "major": 5}
    assert (found["reader"], found["compiler"]) == ("", f"{place}/c++")
    assert found["folder"] == str(ENTRYPOINTS / "scriptmode_runtime")
    found = probe(tmp_path / "none", CXX="no-such-compiler")
    assert (found["mpirun"], found["reader"], found["compiler"]) == (None, "", "")
