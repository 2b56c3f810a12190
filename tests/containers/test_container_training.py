"""The demo's programs on hosts that are containers: real TensorFlow clusters and a real Horovod ring across them."""

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from containers.conftest import docker
from containers.container_jobs import PROGRAMS, ContainerJob

from scriptmode import MPI, MultiWorkerMirrored, ParameterServer, TrainingInput
from scriptmode.containers import TENSORFLOW_VERSIONS

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(2400)]

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
DATA = NOTEBOOKS / "data" / "fashion_mnist"
HOSTS = ["algo-1", "algo-2"]
WITH_TF_ESTIMATOR = TENSORFLOW_VERSIONS[0]
AT_ONCE = 2
#: By layout: the program, its distribution and variables, and how many trainers it has.
TRAININGS = {
    "parameter_server": ("train_ps.py", ParameterServer(coordinator=True), {}, 2),
    "multi_worker_mirrored": ("train_mwms.py", MultiWorkerMirrored(), {}, 2),
    "horovod": ("train_hvd.py", MPI(processes_per_host=2), {"SCRIPTMODE_MPI_LAUNCHER": "ssh"}, 4),
    "parameter_server_estimator": ("train_ps_estimator.py", ParameterServer(), {}, 2),
}
#: Reads models back with the image's TensorFlow, on images that no trainer saw.
SCORES = """
import sys
from pathlib import Path
import images, model
held_out = images.load(Path("/eval"))
for archive in sys.argv[1:]:
    print("scored", archive, model.score_archive(Path(archive), held_out))
"""


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """The demo's programs, and the one that writes down what they were given."""
    folder = tmp_path_factory.mktemp("source") / "code"
    shutil.copytree(NOTEBOOKS / "code", folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROGRAMS / "recorded.py", folder)
    return folder


def run(code, image, data_dir, layout):
    """Train in a layout, to the job's end."""
    program, distribution, variables, _ = TRAININGS[layout]
    job = ContainerJob(
        data_dir,
        entry_point="recorded.py",
        source_dir=str(code),
        image_uri=image,
        distribution=distribution,
        environment={"PROGRAM": program, **variables},
        hyperparameters={"epochs": 1, "steps-per-epoch": 40},
        inputs={
            "train": TrainingInput((DATA / "train").as_uri(), distribution="FullyReplicated"),
            "eval": (DATA / "eval").as_uri(),
        },
    )
    job.job.wait()
    return job


@pytest.fixture(scope="module")
def trained(code, image, tensorflow_version, tmp_path_factory):
    """The jobs of one TensorFlow version, by their layouts, ended."""
    layouts = [layout for layout in TRAININGS if "estimator" not in layout or tensorflow_version == WITH_TF_ESTIMATOR]
    data_dir = tmp_path_factory.mktemp("data")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(layouts, pool.map(lambda layout: run(code, image, data_dir, layout), layouts)))


@pytest.fixture(scope="module")
def scores(trained, code, image):
    """The delivered models' accuracies."""
    volumes, archives = ["--volume", f"{code}:/code:ro", "--volume", f"{DATA / 'eval'}:/eval:ro"], []
    for layout, job in trained.items():
        archives.append(f"/models/{layout}.tar.gz")
        volumes += ["--volume", f"{job.delivered()}:{archives[-1]}:ro"]
    done = docker("run", "--rm", "--network", "none", *volumes, "--workdir", "/code", image, "python", "-c", SCORES, *archives)
    assert done.returncode == 0, done.stdout
    return {layout: float(score) for layout, score in re.findall(r"scored /models/(\w+)\S* (\S+)", done.stdout)}


ALL = [
    (version, layout)
    for version in TENSORFLOW_VERSIONS
    for layout in TRAININGS
    if "estimator" not in layout or version == WITH_TF_ESTIMATOR
]
each = pytest.mark.parametrize(("tensorflow_version", "layout"), ALL, indirect=["tensorflow_version"], scope="session")


@each
def test_two_containers_train_one_model(layout, trained, scores):
    job = trained[layout]
    said = dict(re.findall(r"(\S+)=(\S+)", job.log().rpartition("summary:")[2].partition("\n")[0]))
    assert (said["layout"], said["trainers"]) == (layout, str(TRAININGS[layout][3]))
    # Forty steps give 0.70 to 0.82 in every layout; guessing gives 0.10.
    assert scores[layout] == pytest.approx(float(said["accuracy"]), abs=0.002)
    assert scores[layout] > 0.6


@each
def test_every_process_is_given_what_is_its_hosts(layout, trained):
    for name, seen in trained[layout].records().items():
        host, variables = name.split()[0], seen["variables"]
        assert seen["host"] == variables["SM_CURRENT_HOST"] == variables["CURRENT_HOST"] == host
        assert json.loads(variables["SM_HOSTS"]) == HOSTS
        assert json.loads(variables["SM_RESOURCE_CONFIG"])["current_host"] == host
        assert variables["SM_NETWORK_INTERFACE_NAME"] == "eth0"
        assert variables["SM_CHANNEL_TRAIN"] == "/opt/ml/input/data/train"
        assert variables["SM_MODEL_DIR"] == "/opt/ml/model"
        assert len(set(seen["addresses"].values())) == len(HOSTS)
        assert {"--epochs", "1", "--steps-per-epoch", "40"} <= set(seen["arguments"])


def tasks(job):
    """What ``TF_CONFIG`` said, by host."""
    return {name.split()[0]: json.loads(seen["variables"]["TF_CONFIG"]) for name, seen in job.records().items()}


def at(port, hosts=HOSTS):
    return [f"{host}:{port}" for host in hosts]


@pytest.mark.parametrize("tensorflow_version", TENSORFLOW_VERSIONS, indirect=True, scope="session")
def test_tf_config_names_the_containers_and_the_default_ports(trained):
    coordinator, mirrored = tasks(trained["parameter_server"]), tasks(trained["multi_worker_mirrored"])
    cluster = {"chief": at(2221, HOSTS[:1]), "ps": at(2223), "worker": at(2222)}
    assert coordinator == {
        "algo-1": {"cluster": cluster, "environment": "cloud", "task": {"index": 0, "type": "chief"}}
    }
    assert mirrored == {
        host: {"cluster": {"worker": at(8890)}, "environment": "cloud", "task": {"index": index, "type": "worker"}}
        for index, host in enumerate(HOSTS)
    }


@pytest.mark.parametrize("tensorflow_version", [WITH_TF_ESTIMATOR], indirect=True, scope="session")
def test_tf_config_of_tf_estimator_has_a_master(trained):
    cluster = {"master": at(2222, HOSTS[:1]), "ps": at(2223), "worker": at(2222, HOSTS[1:])}
    given = tasks(trained["parameter_server_estimator"])
    assert {task["task"]["type"] for task in given.values()} == {"master", "worker"}
    assert [given[host]["cluster"] for host in HOSTS] == [cluster, cluster]


def check_ranks(job, launcher):
    """Assert that there were two ranks on each host, and by what those of the second one came up."""
    records = job.records()
    assert sorted(records) == ["algo-1 0", "algo-1 1", "algo-2 2", "algo-2 3"]
    by_ssh = {name: any("sshd" in words for words in seen["ancestors"]) for name, seen in records.items()}
    assert by_ssh == {name: name.startswith("algo-2") and launcher == "ssh" for name in records}


@pytest.mark.parametrize("tensorflow_version", TENSORFLOW_VERSIONS, indirect=True, scope="session")
def test_horovods_ranks_on_the_other_container_come_up_over_ssh(trained):
    check_ranks(trained["horovod"], "ssh")


def test_ranks_on_the_other_container_come_up_without_ssh_by_default(image, code, tmp_path):
    job = ContainerJob(
        tmp_path,
        entry_point="recorded.py",
        source_dir=str(code),
        image_uri=image,
        distribution=MPI(processes_per_host=2),
    )
    job.job.wait()
    check_ranks(job, "peers")
    for name, seen in job.records().items():
        assert seen["host"] == seen["variables"]["SM_CURRENT_HOST"] == name.split()[0]
