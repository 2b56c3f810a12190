"""Hosts that are pods do what every host must do, and train with TensorFlow and Horovod."""

import json
import re
from pathlib import Path

import pytest
from fakes import wheels
from fakes.processes import until

from scriptmode import MPI, Estimator, MultiWorkerMirrored, ParameterServer, TrainingInput
from scriptmode.testing import EngineSuite

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow, pytest.mark.timeout(2400)]

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
DATA = NOTEBOOKS / "data" / "fashion_mnist"
LAYOUTS = {
    "parameter_server": ("train_ps.py", ParameterServer(coordinator=True)),
    "parameter_server_estimator": ("train_ps_estimator.py", ParameterServer()),
    "multi_worker_mirrored": ("train_mwms.py", MultiWorkerMirrored()),
    "horovod": ("train_hvd.py", MPI(processes_per_host=1)),
}
READS = """
import os, sys
from pathlib import Path
name, mode = os.environ["SM_CURRENT_HOST"], sys.argv[sys.argv.index("--mode") + 1]
folder = Path("/opt/ml/input/data/train")
if mode == "Pipe":
    content = Path("/opt/ml/input/data/train_0").read_bytes()
else:
    content = b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
print("read", mode, len(content), sorted(set(content)), flush=True)
"""


@pytest.fixture(autouse=True)
def in_pods(jobs, idle_cluster, monkeypatch, tmp_path):
    """Let jobs of the instance type be pods of the cluster; nothing is left of them."""
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "jobs"))
    yield
    # The cluster deletes what the Secret owned some moments later.
    words = ("get", "secrets,services", "--selector=scriptmode/job", "--output=name")
    until(lambda: not idle_cluster.kubectl(*words).stdout)


class TestKubernetes(EngineSuite):
    """The suite of every engine."""

    instance_type = "kubernetes"


@pytest.mark.tf
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pods_of_one_cpu_train_one_model(jobs, monkeypatch, layout):
    jobs.use(monkeypatch, resources={"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}})
    program, distribution = LAYOUTS[layout]
    estimator = Estimator(
        entry_point=program, source_dir=str(NOTEBOOKS / "code"), instance_type="kubernetes", instance_count=2,
        distribution=distribution, hyperparameters={"epochs": 1, "steps-per-epoch": 20}, max_run=2000,
    )  # fmt: skip
    job = estimator.fit({name: (DATA / name).as_uri() for name in ("train", "eval")})
    log = "\n".join(event.message for event in job.logs())
    assert re.search(rf"layout={layout}\b.* trainers=2\b", log), log
    assert float(re.findall(r"accuracy=(\d\.\d+)", log)[-1]) > 0.3  # guessing gives 0.1


@pytest.mark.parametrize("mode", ["File", "Pipe", "FastFile"])
def test_channels_arrive_in_each_mode_whole_and_in_shards(tmp_path, mode):
    folder, code = tmp_path / "channel", tmp_path / "code"
    folder.mkdir()
    code.mkdir()
    for number in range(4):
        (folder / f"part-{number}").write_bytes(bytes([number]) * 100_000)
    (code / "read.py").write_text(READS)
    estimator = Estimator(
        entry_point="read.py", source_dir=str(code), instance_type="kubernetes", instance_count=2,
        hyperparameters={"mode": mode},
    )  # fmt: skip
    shards = TrainingInput(folder.as_uri(), distribution="ShardedByS3Key", input_mode=mode)
    job = estimator.fit({"train": shards})
    read = sorted(event.message for event in job.logs() if event.message.startswith("read"))
    assert [line.split()[2] for line in read] == ["200000", "200000"]
    assert sorted(number for line in read for number in json.loads(line.split(None, 3)[3])) == [0, 1, 2, 3]


def test_logs_are_those_of_the_pod_too(idle_cluster, tmp_path):
    (tmp_path / "train.py").write_text("import time; print('a line of the script', flush=True); time.sleep(20)")
    estimator = Estimator(entry_point=str(tmp_path / "train.py"), instance_type="kubernetes", instance_count=1)
    job = estimator.fit(wait=False)
    words = ("logs", "--selector=scriptmode/host=algo-1", "--container=agent")
    until(lambda: "a line of the script" in idle_cluster.kubectl(*words, check=False).stdout)
    job.stop()
    until(lambda: job.status == "Stopped")


#: What each container has where the standard "restricted" is enforced, and a read-only root besides.
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
WRITES = """
import os
from pathlib import Path
import extra
for folder in (os.environ["SM_MODEL_DIR"], os.environ["SM_OUTPUT_DATA_DIR"], "/opt/ml/checkpoints", "/tmp"):
    Path(folder, "written").write_text("so")
words = Path("/opt/ml/input/data/train/words").read_text()
print(f"user {os.getuid()} of {Path.home()} read {words}", flush=True)
"""


@pytest.mark.parametrize(("distribution", "scripts"), [(None, 2), (MPI(processes_per_host=2), 4)], ids=["none", "mpi"])
def test_restricted_pods_install_requirements_read_inputs_and_write_where_scripts_may(
    jobs, idle_cluster, monkeypatch, tmp_path, distribution, scripts
):
    jobs.use(monkeypatch, restricted=True)
    code, data = tmp_path / "code", tmp_path / "data"
    code.mkdir()
    data.mkdir()
    (data / "words").write_text("all of it")
    (code / wheels.NAME).write_bytes(wheels.extra())
    (code / "requirements.txt").write_text(f"./{wheels.NAME}\n")
    (code / "train.py").write_text(WRITES)
    estimator = Estimator(
        entry_point="train.py", source_dir=str(code), instance_type="kubernetes", instance_count=2,
        distribution=distribution, checkpoint_s3_uri=(tmp_path / "checkpoints").as_uri(), max_run=300,
    )  # fmt: skip
    job = estimator.fit({"train": TrainingInput(data.as_uri(), input_mode="FastFile")}, wait=False)
    for pod in until(lambda: idle_cluster.get("pods", "--selector=scriptmode/job")["items"]):
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert all(container["securityContext"] == RESTRICTED for container in pod["spec"]["containers"])
    job.wait(timeout=300)
    log = [event.message for event in job.logs()]
    assert sum("user 1000 of /tmp read all of it" in line for line in log) == scripts
    assert any("is in FastFile mode, but was copied as in File mode" in line for line in log)
    assert (tmp_path / "checkpoints" / "written").read_text() == "so"
