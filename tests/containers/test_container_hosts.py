"""What a script finds on hosts that are containers, and what becomes of what it leaves."""

import json
import os
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest
from containers.conftest import STRANGER
from fakes import wheels
from fakes.container_jobs import MEET, ContainerJobs
from fakes.local_jobs import channel
from fakes.processes import until

pytestmark = [pytest.mark.docker, pytest.mark.slow]

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret", "AWS_SESSION_TOKEN": "testing-token",
}  # fmt: skip
REQUIRES = {"requirements.txt": f"./{wheels.NAME}\n", wheels.NAME: wheels.extra()}
LOOK = """
    import fcntl, json, struct, sys
    import extra

    def address(interface):
        with socket.socket() as asking:
            asked = struct.pack("256s", interface.encode())
            return socket.inet_ntoa(fcntl.ioctl(asking, 0x8915, asked)[20:24])  # SIOCGIFADDR

    def size(path):
        status = os.statvfs(path)
        return status.f_blocks * status.f_frsize

    with open("/opt/ml/input/config/hyperparameters.json") as file:
        hyperparameters = json.load(file)
    host = os.environ["SM_CURRENT_HOST"]
    found = {
        "environ": dict(os.environ), "hyperparameters": hyperparameters,
        "hostname": socket.gethostname(), "extra": extra.NUMBER, "root": os.path.ismount("/opt/ml"),
        "addresses": {name: socket.gethostbyname(name) for name in json.loads(os.environ["SM_HOSTS"])},
        "interfaces": sorted(os.listdir("/sys/class/net")), "eth0": address("eth0"), "shm": size("/dev/shm"),
        "user": os.getuid(),
    }
    with open(f"/opt/ml/model/{host}.json", "w") as file:
        json.dump(found, file)
    model_dir = sys.argv[sys.argv.index("--model_dir") + 1][len("file://"):]
    with open(os.path.join(model_dir, host), "w") as file:
        file.write("model")
    partner.sendall(b".")
    partner.recv(1)
"""


class Found(NamedTuple):
    hosts: dict
    log: list
    model_dir: Path


@pytest.fixture(scope="module")
def look(tmp_path_factory, runtime_image):
    """A job of two hosts that looked around and left something everywhere; with the directory of its model."""
    folder = tmp_path_factory.mktemp("look")
    jobs = ContainerJobs(folder, runtime_image)
    given = {"dir": "/opt/ml/output", "lr": 0.1, "model_dir": f"file://{folder}/model dir"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        name = jobs.start(MEET + textwrap.dedent(LOOK), hosts=2, hyperparameters=given, files=REQUIRES)
    description = jobs.completed(name)
    hosts = {file[: -len(".json")]: json.loads(content) for file, content in jobs.model(description).items()}
    yield Found(hosts, jobs.lines(name), folder / "model dir")
    jobs.close()


def test_a_host_has_its_own_name_network_and_opt_ml_and_half_of_the_machines_memory_to_share(look):
    page = os.sysconf("SC_PAGE_SIZE")
    for name, host in look.hosts.items():
        assert (host["hostname"], host["interfaces"]) == (name, ["eth0", "lo"])
        assert host["addresses"][name] == host["eth0"]
        assert (host["root"], host["user"]) == (True, 0)
        # Of whole pages.
        assert (host["shm"] + page - 1) // page == (os.sysconf("SC_PHYS_PAGES") + 1) // 2


def test_the_environment_has_nothing_of_the_callers_but_credentials(look):
    of_the_image = {"PATH", "HOME", "LANG", "PWD", "HOSTNAME", "PYTHONUNBUFFERED"}
    for host in look.hosts.values():
        environ = host["environ"]
        assert {name: environ[name] for name in CREDENTIALS} == CREDENTIALS
        same = {name for name in set(environ) & set(os.environ) if environ[name] == os.environ[name]}
        assert {name for name in same if not name.startswith("AWS_")} <= of_the_image


def test_each_host_installs_the_requirements(look):
    for host in look.hosts.values():
        assert (host["extra"], host["environ"]["PATH"].partition(":")[0]) == (7, "/opt/ml/overlay/bin")
        assert host["hyperparameters"]["sagemaker_submit_directory"].startswith('"/opt/ml/input/')


def test_what_is_written_to_model_dir_is_on_this_machine(look):
    assert sorted(path.name for path in look.model_dir.iterdir()) == ["algo-1", "algo-2"]


@pytest.fixture(scope="module")
def strangers_image(runtime_image, make_image):
    """An image whose user is neither root nor the caller."""
    return make_image("stranger", f"FROM {runtime_image}\nUSER {STRANGER}\n")


def test_an_image_with_another_user_installs_the_requirements(tmp_path, strangers_image):
    jobs = ContainerJobs(tmp_path, strangers_image)
    name = jobs.start("import extra, os; print('found', extra.NUMBER, os.getuid())", files=REQUIRES)
    assert jobs.wait(name)["TrainingJobStatus"] == "Completed", jobs.lines(name)
    assert "found 7 12345" in "\n".join(jobs.lines(name))
    jobs.close()


STRANGE = """
    import os, sys
    assert os.getuid() == 12345
    for place in ("model", "output/data", "checkpoints", "checkpoints/deep"):
        with open(f"/opt/ml/{place}/made", "w") as file:
            file.write("by a stranger")
    os.mkdir("/opt/ml/model/closed", 0o700)
    with open(os.open("/opt/ml/model/closed/own", os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        file.write("own")
    with open("/opt/ml/input/data/train/a") as file, open("/opt/ml/input/data/piped_0") as pipe:
        print("read", file.read(), pipe.read())
    with open("/opt/ml/input/data/fast/a") as file:
        print("read fast", file.read())
    with open(sys.argv[2][len("file://"):] + "/written", "w") as file:
        file.write("model")
    sys.exit(int(sys.argv[4]))
"""


@pytest.mark.parametrize("code", [0, 3], ids=["completed", "failed"])
def test_an_images_own_user_trains_and_leaves_files_of_the_callers(code, strangers_image, tmp_path):
    jobs = ContainerJobs(tmp_path, strangers_image)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("A")
    (tmp_path / "kept" / "deep").mkdir(parents=True)
    (tmp_path / "kept" / "deep" / "old").write_text("old")
    channels = [channel(name, f"file://{tmp_path}/in", InputMode=mode)
                for name, mode in (("train", "File"), ("piped", "Pipe"), ("fast", "FastFile"))]  # fmt: skip
    hyperparameters = {"model_dir": f"file://{jobs.data_dir}/jobs/job-1/model", "z": code}
    more = {"CheckpointConfig": {"S3Uri": f"file://{tmp_path}/kept"}}
    description = jobs.run(STRANGE, hyperparameters=hyperparameters, channels=channels, more=more)
    assert description["TrainingJobStatus"] == ("Failed" if code else "Completed"), description
    assert [line for line in jobs.lines("job-1") if "read" in line] == ["algo-1: read A A", "algo-1: read fast A"]
    assert description.get("FailureReason", "exit code: 0").endswith(f"exit code: {code}")
    if not code:
        assert jobs.model(description) == {"made": b"by a stranger", "closed": None, "closed/own": b"own"}
    assert (tmp_path / "kept" / "deep" / "made").read_text() == "by a stranger"
    # The agent removes what it does not need any more after it told the end.
    job = jobs.data_dir / "jobs" / "job-1"
    last = job / "hosts" / "algo-1" / "input" / "data" if code else job / "hosts"
    until(lambda: not (job / "channels").exists() and not last.exists())
    foreign = [path for path in tmp_path.rglob("*") if path.lstat().st_uid != os.geteuid()]
    assert foreign == []
    jobs.close()
