"""What a script finds on hosts that are containers, and what becomes of what it leaves."""

import json
import os
import textwrap

import pytest
from containers.conftest import STRANGER
from fakes import wheels
from fakes.container_jobs import MEET, ContainerJobs
from fakes.local_jobs import channel, unpacked
from fakes.processes import until

pytestmark = [pytest.mark.docker, pytest.mark.slow]

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
    with open("/opt/ml/checkpoints/deep/old") as file:
        restored = file.read()
    hosts = json.loads(os.environ["SM_HOSTS"])
    host = os.environ["SM_CURRENT_HOST"]
    found = {
        "argv": sys.argv[1:], "environ": dict(os.environ), "hyperparameters": hyperparameters, "restored": restored,
        "hostname": socket.gethostname(), "extra": extra.NUMBER, "root": os.path.ismount("/opt/ml"),
        "addresses": {name: socket.gethostbyname(name) for name in json.loads(os.environ["SM_HOSTS"])},
        "interfaces": sorted(os.listdir("/sys/class/net")), "eth0": address("eth0"), "shm": size("/dev/shm"),
        "user": os.getuid(),
    }
    with open(f"/opt/ml/model/{host}.json", "w") as file:
        json.dump(found, file)
    with open(os.path.join(os.environ["SM_OUTPUT_DATA_DIR"], host), "w") as file:
        file.write("output")
    with open(f"/opt/ml/checkpoints/deep/{host}", "w") as file:
        file.write("new")
    model_dir = sys.argv[sys.argv.index("--model_dir") + 1][len("file://"):]
    with open(os.path.join(model_dir, host), "w") as file:
        file.write("model")
    print("trained on", host)
    partner.sendall(b".")
    partner.recv(1)
"""


class Look:
    """A job of two hosts that looked around and left something everywhere."""

    def __init__(self, folder, image):
        self.folder = folder
        (folder / "kept" / "deep").mkdir(parents=True)
        (folder / "kept" / "deep" / "old").write_text("from before")
        self.jobs = ContainerJobs(folder, image)
        files = {"requirements.txt": f"./{wheels.NAME}\n", wheels.NAME: wheels.extra()}
        hyperparameters = {"dir": "/opt/ml/output", "lr": 0.1, "model_dir": f"file://{folder}/model dir"}
        more = {
            "Environment": {"OUT": "/opt/ml/model", "ASKED": "a b\n'c'"},
            "CheckpointConfig": {"S3Uri": f"file://{folder}/kept"},
        }
        request = self.jobs.request(
            MEET + textwrap.dedent(LOOK), hosts=2, hyperparameters=hyperparameters, more=more, files=files
        )
        self.jobs.platform.create(request)
        self.name = request["TrainingJobName"]
        self.description = self.jobs.wait(self.name)
        assert self.description["TrainingJobStatus"] == "Completed", self.description["FailureReason"]
        found = self.jobs.model(self.description)
        self.hosts = {name[: -len(".json")]: json.loads(content) for name, content in found.items()}


@pytest.fixture(scope="module")
def look(tmp_path_factory, built):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "testing-secret")
        patch.setenv("AWS_SESSION_TOKEN", "testing-token")
        patch.setenv("OF_THE_CALLER", "private")
        looked = Look(tmp_path_factory.mktemp("look"), built("2.15.1"))
    yield looked
    looked.jobs.close()


def test_hosts_know_each_other_by_their_names(look):
    assert list(look.hosts) == ["algo-1", "algo-2"]
    for name, host in look.hosts.items():
        assert host["hostname"] == host["environ"]["SM_CURRENT_HOST"] == name
        assert json.loads(host["environ"]["SM_HOSTS"]) == ["algo-1", "algo-2"]
        assert host["addresses"] == look.hosts["algo-1"]["addresses"]
        assert host["addresses"][name] == host["eth0"]
    assert len(set(look.hosts["algo-1"]["addresses"].values())) == 2


def test_the_network_interface_is_the_containers(look):
    for host in look.hosts.values():
        assert host["environ"]["SM_NETWORK_INTERFACE_NAME"] == "eth0"
        assert host["interfaces"] == ["eth0", "lo"]


def test_the_environment_is_the_requests_and_nothing_of_the_callers_but_credentials(look):
    for host in look.hosts.values():
        environ = host["environ"]
        assert (environ["OUT"], environ["ASKED"]) == ("/opt/ml/model", "a b\n'c'")
        assert (environ["TRAINING_JOB_NAME"], environ["AWS_REGION"]) == (look.name, "us-east-1")
        assert environ["AWS_ACCESS_KEY_ID"] == "testing"
        assert environ["AWS_SECRET_ACCESS_KEY"] == "testing-secret"
        assert environ["AWS_SESSION_TOKEN"] == "testing-token"
        of_the_image = {"PATH", "HOME", "LANG", "PWD", "HOSTNAME", "PYTHONUNBUFFERED"}
        same = {name for name in set(environ) & set(os.environ) if environ[name] == os.environ[name]}
        assert {name for name in same if not name.startswith("AWS_")} <= of_the_image
        assert "OF_THE_CALLER" not in environ


def test_opt_ml_is_the_real_root(look):
    for host in look.hosts.values():
        assert host["root"]
        assert host["environ"]["SM_MODEL_DIR"] == "/opt/ml/model"
        assert host["environ"]["SM_INPUT_DIR"] == "/opt/ml/input"
        assert host["hyperparameters"]["dir"] == '"/opt/ml/output"'
        assert host["argv"][:2] == ["--dir", "/opt/ml/output"]
        assert host["user"] == 0


def test_requirements_are_installed_and_the_source_comes_from_this_machine(look):
    assert {host["extra"] for host in look.hosts.values()} == {7}
    submitted = look.description["HyperParameters"]["sagemaker_submit_directory"]
    assert submitted.startswith('"file:///')
    seen = look.hosts["algo-1"]["hyperparameters"]["sagemaker_submit_directory"]
    assert seen.startswith('"/opt/ml/input/')


def test_one_host_installs_the_requirements_and_the_other_uses_its_environment(look):
    lines = [line.partition(": ")[2] for line in look.jobs.lines(look.name)]
    assert len([line for line in lines if line.startswith("scriptmode: installing the requirements into")]) == 1
    assert len([line for line in lines if line.startswith("scriptmode: using the cached environment")]) == 1
    assert {host["environ"]["PATH"].partition(":")[0] for host in look.hosts.values()} == {"/opt/ml/overlay/bin"}


def test_a_later_job_of_an_image_with_another_user_uses_the_environment(tmp_path, built, make_image):
    image = make_image("user", f"FROM {built('2.15.1')}\nUSER {STRANGER}\n")
    jobs = ContainerJobs(tmp_path, image)
    files = {"requirements.txt": f"./{wheels.NAME}\n", wheels.NAME: wheels.extra()}
    found = []
    for _ in range(2):
        name = jobs.start("import extra, os; print('found', extra.NUMBER, os.getuid())", files=files)
        assert jobs.wait(name)["TrainingJobStatus"] == "Completed", jobs.lines(name)
        found.append("\n".join(jobs.lines(name)))
        shared = [path for path in (jobs.data_dir / "environments").rglob("*") if path.lstat().st_uid != os.geteuid()]
        assert shared == []
    assert all("found 7 12345" in log for log in found)
    assert ["using the cached environment" in log for log in found] == [False, True]
    jobs.close()


def test_shared_memory_is_half_of_the_machines_memory(look):
    page = os.sysconf("SC_PAGE_SIZE")
    half = page * os.sysconf("SC_PHYS_PAGES") // 2
    # Of whole pages.
    assert {(host["shm"] + page - 1) // page for host in look.hosts.values()} == {(half + page - 1) // page}


def test_checkpoints_are_restored_and_saved(look):
    assert {host["restored"] for host in look.hosts.values()} == {"from before"}
    kept = sorted(path.name for path in (look.folder / "kept" / "deep").iterdir())
    assert kept == ["algo-1", "algo-2", "old"]


def test_output_and_log_are_delivered(look):
    archive = look.description["ModelArtifacts"]["S3ModelArtifacts"].replace("model.tar.gz", "output.tar.gz")
    assert unpacked(archive[len("file://") :]) == {"algo-1": b"output", "algo-2": b"output"}
    lines = look.jobs.lines(look.name)
    assert [line for line in lines if "trained on" in line] == [
        "algo-1: trained on algo-1",
        "algo-2: trained on algo-2",
    ]


def test_what_is_written_to_model_dir_is_on_this_machine(look):
    assert sorted(path.name for path in (look.folder / "model dir").iterdir()) == ["algo-1", "algo-2"]


def test_a_job_that_ended_leaves_nothing_in_docker(look):
    assert look.jobs.left() == []


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


@pytest.fixture(scope="module")
def strangers_image(built, make_image):
    return make_image("stranger", f"FROM {built('2.15.1')}\nUSER {STRANGER}\n")


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
