"""A plan, and what the processes of the same job then see: the same, but for ports, secrets and what is installed."""

import json
import re
import textwrap

import pytest

from scriptmode import MPI, Estimator, MultiWorkerMirrored
from scriptmode.platforms.local import LocalPlatform
from scriptmode.request.render import render_request

#: Writes down what one process sees; under mpirun what that was started with too.
SCRIPT = """
import json, os, pathlib

def words(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\\0")[:-1]

def parents():
    pid = os.getpid()
    while pid > 1:
        yield pid
        pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

config = pathlib.Path(os.environ["SM_INPUT_CONFIG_DIR"])
seen = {
    "host": os.environ["CURRENT_HOST"],
    "rank": os.environ.get("OMPI_COMM_WORLD_RANK"),
    "files": {f"input/config/{path.name}": json.loads(path.read_text()) for path in config.iterdir()},
    "argv": words(os.getpid()),
    "cwd": os.getcwd(),
    "TF_CONFIG": os.environ.get("TF_CONFIG", ""),
    "mpirun": next((words(pid) for pid in parents() if "-np" in words(pid)), None),
}
pathlib.Path(os.environ["SEEN"], f"{os.getpid()}.json").write_text(json.dumps(seen))
"""


def without_ports(text):
    return re.sub(r"(127\.0\.0\.1:)\d+", r"\g<1>0", text)


def known_before(files):
    """Files as they are known before the start."""
    told = json.loads(json.dumps(files))
    cluster = told["input/config/scriptmode.json"]
    cluster["secret"] = "******"
    for host in cluster["hosts"].values():
        host["ports"] = dict.fromkeys(host["ports"], 0)
    return told


class Both:
    """A plan, and then the same job."""

    def __init__(self, folder, distribution):
        (folder / "code").mkdir()
        (folder / "seen").mkdir()
        (folder / "in").mkdir()
        (folder / "in" / "data").write_text("1")
        (folder / "code" / "train.py").write_text(textwrap.dedent(SCRIPT))
        estimator = Estimator(
            entry_point="train.py",
            source_dir=str(folder / "code"),
            instance_type="local_process",
            instance_count=2,
            distribution=distribution,
            hyperparameters={"epochs": 3, "out": "/opt/ml/model/x", "name": "it's"},
            environment={"SEEN": str(folder / "seen")},
            checkpoint_s3_uri=f"file://{folder}/checkpoints",
            platform=LocalPlatform(data_dir=folder / "data dir"),
        )
        self.plan = estimator.plan(f"file://{folder}/in", job_name="job-1")
        self.untouched = not (folder / "data dir").exists()
        job = estimator.fit(f"file://{folder}/in", job_name="job-1", logs=False)
        self.request = render_request(estimator.platform._store.find(job.name).read_job().request)
        self.seen = [json.loads(path.read_text()) for path in (folder / "seen").iterdir()]
        self.description = job.describe()


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory):
    return Both(tmp_path_factory.mktemp("mirrored"), MultiWorkerMirrored(evaluator=True))


@pytest.fixture(scope="module")
def mpi(tmp_path_factory):
    return Both(tmp_path_factory.mktemp("mpi"), MPI(2, "-x NCCL_PROTO=simple"))


def test_the_request_that_was_sent_is_the_one_that_was_planned(mirrored):
    assert mirrored.request == mirrored.plan.request
    assert mirrored.untouched


def test_the_processes_that_ran_are_the_ones_that_were_planned(mirrored):
    planned = sorted(
        (host.name, process.argv, process.cwd, process.env["TF_CONFIG"])
        for host in mirrored.plan.hosts.values()
        for process in host.processes
    )
    ran = sorted(
        (each["host"], tuple(each["argv"]), each["cwd"], without_ports(each["TF_CONFIG"])) for each in mirrored.seen
    )
    assert ran == planned
    assert [host.roles for host in mirrored.plan.hosts.values()] == ["worker 0", "worker 1, evaluator"]


def test_the_files_that_were_found_are_the_ones_that_were_planned(mirrored):
    for each in mirrored.seen:
        assert known_before(each["files"]) == mirrored.plan.hosts[each["host"]].files


@pytest.mark.mpi
def test_the_mpirun_that_ran_is_the_one_that_was_planned(mpi):
    first, second = mpi.plan.hosts.values()
    # Open MPI 5's mpirun becomes prterun.
    assert {tuple(each["mpirun"][1:]) for each in mpi.seen} == {first.main.argv[1:]}
    assert second.main is None


@pytest.mark.mpi
def test_the_ranks_were_on_the_hosts_that_were_planned(mpi):
    ranks = {host: sorted(int(each["rank"]) for each in mpi.seen if each["host"] == host) for host in mpi.plan.hosts}
    assert ranks == {"algo-1": [0, 1], "algo-2": [2, 3]}
    assert [host.roles for host in mpi.plan.hosts.values()] == ["mpirun, ranks 0-1", "ranks 2-3"]
    for each in mpi.seen:
        assert known_before(each["files"]) == mpi.plan.hosts[each["host"]].files
