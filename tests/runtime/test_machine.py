"""What a process may use of its machine."""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from processes.launchers import ENTRYPOINTS

from scriptmode_runtime.host import machine

CGROUPS = Path("/sys/fs/cgroup")


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return str(root)


def limits(folder, quota, period=100_000):
    """Files of a control group, version 1."""
    return {f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": f"{period}\n"}


V1, V2 = "sys/fs/cgroup/cpu", "sys/fs/cgroup"


@pytest.mark.parametrize(
    ("files", "granted"),
    [
        pytest.param({}, None, id="no groups at all"),
        pytest.param({f"{V2}/cpu.max": "200000 100000\n"}, 2, id="whole"),
        pytest.param({f"{V2}/cpu.max": "250000 100000"}, 3, id="rounded up"),
        pytest.param({f"{V2}/cpu.max": "1000 100000"}, 1, id="never none"),
        pytest.param({f"{V2}/cpu.max": "max 100000"}, None, id="no limit"),
        pytest.param({f"{V2}/cpu.max": "9900000 100000"}, 99, id="more than most machines have"),
        pytest.param({f"{V2}/cpu.max": "200000 0"}, None, id="no period"),
        pytest.param({f"{V2}/cpu.max": "half"}, None, id="not understood"),
        pytest.param(limits(V1, 300_000), 3, id="version 1"),
        pytest.param(limits(V1, -1), None, id="version 1, no limit"),
        pytest.param(limits(f"{V2}/cpu,cpuacct", 300_000), 3, id="version 1, mounted with another"),
        pytest.param(
            {"proc/self/cgroup": "0::/a/b\n", f"{V2}/a/b/cpu.max": "400000 100000"}, 4, id="of the process's own group"
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/a/b\n", f"{V2}/a/cpu.max": "300000 100000", f"{V2}/a/b/cpu.max": "max 100000"},
            3,
            id="of the group above",
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/a/b\n", f"{V2}/a/cpu.max": "300000 100000", f"{V2}/a/b/cpu.max": "200000 100000"},
            2,
            id="the smallest, below",
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
            {"proc/self/cgroup": "4:cpu,cpuacct:/a/b\n1:name=systemd:/x\n0::/\n", **limits(f"{V1}/a", 500_000)},
            5,
            id="version 1, of the group above",
        ),
        pytest.param(
            {"proc/self/cgroup": "4:cpu,cpuacct:/docker/f00\n", **limits(V1, 200_000)}, 2, id="a path only its host has"
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/../../b\n", f"{V2}/cpu.max": "200000 100000"}, 2, id="a path outside the container's part"
        ),
        pytest.param(
            {"proc/self/cgroup": "3:cpuset:/a\n2:cpuacct:/a\n", f"{V1}/a/cpu.max": "100000 100000"}, None, id="other controllers"
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/a b:c\n", f"{V2}/a b:c/cpu.max": "200000 100000"}, 2, id="a name with a blank and a colon"
        ),
        pytest.param(
            {"proc/self/cgroup": "0::/a\n", f"{V2}/unified/a/cpu.max": "200000 100000"}, 2, id="version 2 beside version 1"
        ),
        pytest.param({"proc/self/cgroup": "nonsense\n\n"}, None, id="a file not understood"),
    ],
)  # fmt: skip
def test_processors_are_granted_by_every_control_group_above(tmp_path, files, granted):
    assert min(machine._quotas(write(tmp_path, files)), default=None) == granted


def cpus(join=""):
    """Give the processors that a process counts which does ``join`` first, in a shell."""
    code = "from scriptmode_runtime.host import machine; print(machine.inspect().cpus)"
    done = subprocess.run(
        ["/bin/sh", "-c", f'{join}\nexec "$@"', "sh", sys.executable, "-c", code],
        env={"PYTHONPATH": str(ENTRYPOINTS), "PATH": os.defpath}, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    return int(done.stdout)


def test_a_process_counts_the_processors_it_may_run_on():
    first = min(os.sched_getaffinity(0))
    assert cpus() <= len(os.sched_getaffinity(0))
    assert cpus(f"taskset -cp {first} $$ >/dev/null") == 1


@pytest.fixture
def limited():
    """A real control group with half a processor, and one without a limit below it."""
    name = f"scriptmode-{os.getpid()}"
    made = []
    try:
        for mount, settings in (
            (CGROUPS / "cpu", {"cpu.cfs_quota_us": "50000"}),
            (CGROUPS, {"cpu.max": "50000 100000"}),
        ):
            with suppress(OSError):
                for folder in (mount / name, mount / name / "below"):
                    folder.mkdir()
                    made.append(folder)
                for file, text in settings.items():
                    (mount / name / file).write_text(text)
                if (mount / name / "below" / "cgroup.procs").exists():
                    yield mount / name / "below"
                    return
        pytest.skip("control groups cannot be made here")
    finally:
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()


def test_the_kernels_own_control_group_is_obeyed(limited):
    assert cpus(f'echo $$ > "{limited}/cgroup.procs"') == 1


@pytest.mark.parametrize(
    ("environ", "gpus"),
    [
        pytest.param({}, 3, id="nothing said"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "0"}, 1, id="one"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "2,0"}, 2, id="two"),
        pytest.param({"CUDA_VISIBLE_DEVICES": " 0, 1 "}, 2, id="blanks"),
        pytest.param({"CUDA_VISIBLE_DEVICES": ""}, 0, id="empty"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "-1"}, 0, id="minus one"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, 0, id="as a scheduler says none"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "0,7,1"}, 1, id="up to one that is not there"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "GPU-8932f937,GPU-1a2b3c4d"}, 2, id="by name"),
        pytest.param({"CUDA_VISIBLE_DEVICES": ",".join(["MIG-1"] * 7)}, 3, id="parts of GPUs"),
        pytest.param({"NVIDIA_VISIBLE_DEVICES": "void"}, 3, id="void, beside GPUs that are there"),
        pytest.param({"NVIDIA_VISIBLE_DEVICES": "0"}, 3, id="what a container runtime acted on"),
    ],
)
def test_gpus_are_those_that_cuda_sees(tmp_path, environ, gpus):
    names = ("nvidia0", "nvidia1", "nvidia6", "nvidiactl", "nvidia-uvm", "nvidia-caps/nvidia-cap1")
    root = write(tmp_path, {f"dev/{name}": "" for name in names})
    assert machine.inspect(root, environ).gpus == gpus


def test_a_machine_without_gpus_has_none_despite_variables(tmp_path):
    assert machine.inspect(str(tmp_path), {"CUDA_VISIBLE_DEVICES": "0,1", "NVIDIA_VISIBLE_DEVICES": "all"}).gpus == 0


def test_neuron_cores_are_counted_over_all_devices(tmp_path):
    folder = "sys/devices/virtual/neuron_device"
    files = {
        f"{folder}/neuron0/core_count": "2\n",
        f"{folder}/neuron1/core_count": "2\n",
        f"{folder}/neuron2/other": "9",
    }
    assert machine.inspect(write(tmp_path, files)).neurons == 4
