"""The training programs on two nodes: real TensorFlow clusters, and real mpirun with Horovod, by the public call."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scriptmode import MPI, Estimator, MultiWorkerMirrored, ParameterServer, Slurm

ROOT = Path(__file__).parents[2]
CODE = ROOT / "notebooks" / "code"
DATA = ROOT / "notebooks" / "data" / "fashion_mnist"
WITH_TF_ESTIMATOR = sys.version_info < (3, 12)

pytestmark = [pytest.mark.slurm, pytest.mark.slow]

RANKS = """
import os, socket
rank, size = (os.environ["OMPI_COMM_WORLD_" + name] for name in ("RANK", "SIZE"))
print("rank", rank, "of", size, "on", socket.gethostname(), flush=True)
"""
#: Entry point, distribution, hyperparameters, and what the summary of the program says.
TRAININGS = {
    "coordinator": ("train_ps.py", ParameterServer(coordinator=True), {"steps-per-epoch": 60}),
    "estimator": ("train_ps_estimator.py", ParameterServer(), {"steps-per-epoch": 60}),
    "mirrored workers": ("train_mwms.py", MultiWorkerMirrored(), {"steps-per-epoch": 40}),
    "Horovod": ("train_hvd.py", MPI(), {"steps-per-epoch": 10}),
}


@pytest.mark.mpi
def test_mpirun_starts_ranks_on_both_nodes_without_ssh_and_without_slurm(jobs):
    distribution = {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2}
    lines = jobs.completed(jobs.start(RANKS, hyperparameters=distribution))
    found = sorted(line.partition("rank ")[2] for line in lines if " of 4 on " in line)
    assert found == ["0 of 4 on node1", "1 of 4 on node1", "2 of 4 on node2", "3 of 4 on node2"]


@pytest.mark.tf
@pytest.mark.thorough
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("layout", TRAININGS)
def test_a_program_trains_one_model_on_two_nodes(jobs, monkeypatch, layout):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    program, distribution, hyperparameters = TRAININGS[layout]
    if layout == "estimator" and not WITH_TF_ESTIMATOR:
        pytest.skip("TensorFlow 2.15, the last one with tf.estimator, has no wheel for this Python")
    estimator = Estimator(
        entry_point=program,
        source_dir=str(CODE),
        instance_count=2,
        instance_type="slurm",
        platform=Slurm(data_dir=jobs.data_dir),
        distribution=distribution,
        hyperparameters={"epochs": 1, **hyperparameters},
    )
    job = estimator.fit({name: (DATA / name).as_uri() for name in ("train", "eval")}, logs=False)
    summaries = [event.message for event in job.logs() if "summary:" in event.message]
    found = dict(re.findall(r"(\S+)=(\S+)", summaries[-1]))

    assert int(found["trainers"]) == 2
    command = [sys.executable, str(CODE / "evaluate.py"), job.model_data[len("file://") :], str(DATA / "eval")]
    scored = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert float(re.search(r"accuracy=(\d\.\d+)", scored)[1]) > 0.3


@pytest.mark.tf
@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_the_demo_trains_both_layouts_on_two_nodes(jobs, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(jobs.data_dir))
    done = subprocess.run(
        [sys.executable, str(ROOT / "notebooks" / "demo.py"), "--instance-type", "slurm", "--epochs", "3"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "parameter servers, 2 nodes" in done.stdout
    assert "Horovod, 2 nodes" in done.stdout
