"""One job of two hosts that completes: what its hosts are given, what they leave, and the lines of their logs."""

import json
import textwrap

import pytest
from fakes.container_jobs import MEET
from fakes.local_jobs import unpacked
from fakes.processes import until

HOSTS = ("algo-1", "algo-2")
#: Variables of the client that belong to other jobs.
OF_OTHERS = ("SM_HP_OLD", "SAGEMAKER_OLD", "TF_CONFIG", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PRTE_X", "WORLD_SIZE")
LOOKS = MEET + textwrap.dedent("""
    import json, sys
    host = os.environ["SM_CURRENT_HOST"]
    with open("/opt/ml/input/config/resourceconfig.json") as file:
        found = {
            "environ": dict(os.environ), "argv": sys.argv[1:], "host": json.load(file)["current_host"],
            "addresses": [socket.gethostbyname(name) for name in ("algo-1", "algo-2")],
            "localhost": socket.gethostbyname("localhost"), "restored": open("/opt/ml/checkpoints/deep/old").read(), "hostname": socket.gethostname(),
        }
    for number in range(1000):
        os.write(1 + number % 2, b"line %d of %s, %s\\n" % (number, host.encode(), b"x" * 50))
    print("long", "y" * 100_000)
    os.makedirs("/opt/ml/model/export", mode=0o700)
    for path, text in {
        f"/opt/ml/model/export/{host}": host, f"/opt/ml/model/{host}": json.dumps(found), "/opt/ml/model/same": host, f"/opt/ml/output/data/{host}": "out",
        f"/opt/ml/checkpoints/deep/{host}": "new",
    }.items():
        with open(path, "w") as file:
            file.write(text)
    os.symlink(f"/opt/ml/model/{host}", f"/opt/ml/model/latest-{host}")
    partner.sendall(b".")
    partner.recv(1)
    print("the last words of", host, end="")
""")


@pytest.fixture(scope="module")
def name(jobs):
    """Run the job with variables of other jobs around it."""
    (jobs.folder / "kept" / "deep").mkdir(parents=True)
    (jobs.folder / "kept" / "deep" / "old").write_text("from before")
    more = {
        "Environment": {"ASKED": "/opt/ml/model", "UNCHANGED": "/opt/mlops\n'a b'"},
        "CheckpointConfig": {"S3Uri": f"file://{jobs.folder}/kept"},
    }
    with pytest.MonkeyPatch.context() as patch:
        for variable in (*OF_OTHERS, "OF_THE_CLIENT"):
            patch.setenv(variable, "{}")
        name = jobs.start(LOOKS, hosts=2, hyperparameters={"dir": "/opt/ml/model", "lr": 0.1}, more=more)
    jobs.completed(name)
    return name


@pytest.fixture(scope="module")
def model(jobs, name):
    """The files of its model."""
    return jobs.model(jobs.platform.describe(name).response)


@pytest.fixture(scope="module")
def found(model):
    """What each host found."""
    return {host: json.loads(model[host]) for host in HOSTS}


def test_every_phase_is_recorded_in_order(jobs, name):
    description = jobs.platform.describe(name).response
    passed = [transition["Status"] for transition in description["SecondaryStatusTransitions"]]
    assert [status for status in passed if status != "Pending"] == [
        "Starting", "Downloading", "Training", "Uploading", "Completed",
    ]  # fmt: skip
    assert description["SecondaryStatus"] == "Completed"
    assert "FailureReason" not in description


def test_the_hosts_have_names_addresses_and_directories_of_their_own(found):
    for host in HOSTS:
        assert found[host]["host"] == found[host]["environ"]["SM_CURRENT_HOST"] == host
        assert found[host]["addresses"] == found["algo-1"]["addresses"]
        assert found[host]["localhost"] == "127.0.0.1"
        assert json.loads(found[host]["environ"]["SM_HOSTS"]) == list(HOSTS)
    assert len(set(found["algo-1"]["addresses"])) == 2


def test_the_environment_is_the_platforms_the_requests_and_none_of_other_jobs(engine, found, name):
    for host in HOSTS:
        environ = found[host]["environ"]
        assert environ["TRAINING_JOB_NAME"] == name
        assert environ["TRAINING_JOB_ARN"].endswith(f":training-job/{name}")
        assert environ["AWS_REGION"] == "us-east-1"
        assert (environ["ASKED"], environ["UNCHANGED"]) == (environ["SM_MODEL_DIR"], "/opt/mlops\n'a b'")
        assert not [each for each in environ if each.startswith(("PMI", "OMPI_COMM_", "PRTE_"))]
        assert not set(OF_OTHERS) & set(environ)
        assert ("OF_THE_CLIENT" in environ) == engine.inherits_variables
        assert environ["SM_NETWORK_INTERFACE_NAME"] == engine.interface
        assert found[host]["argv"] == ["--dir", environ["SM_MODEL_DIR"], "--lr", "0.1"]


def test_the_models_of_all_hosts_are_one_and_a_conflict_is_logged(jobs, name, model):
    exported = {f"export/{host}": host.encode() for host in HOSTS}
    assert set(model) == {"same", "export", *exported, *HOSTS, *(f"latest-{host}" for host in HOSTS)}
    assert {path: model[path] for path in exported} == exported
    assert model["same"] == b"algo-1"
    assert model["latest-algo-2"] == model["algo-2"]
    assert "algo-1: scriptmode: model: algo-2's 'same' is left out: algo-1 has 'same' too" in jobs.lines(name)
    artifacts = jobs.platform.describe(name).response["ModelArtifacts"]["S3ModelArtifacts"]
    assert artifacts == f"file://{jobs.data_dir}/jobs/{name}/output/model.tar.gz"


def test_the_output_of_all_hosts_is_one(jobs, name):
    assert unpacked(jobs.job_folder(name).output / "output.tar.gz") == dict.fromkeys(HOSTS, b"out")


def test_checkpoints_are_restored_and_saved(jobs, found):
    assert {each["restored"] for each in found.values()} == {"from before"}
    assert sorted(path.name for path in (jobs.folder / "kept" / "deep").iterdir()) == ["algo-1", "algo-2", "old"]


def test_every_line_of_each_host_is_whole_and_in_order(jobs, name):
    lines = jobs.lines(name)
    for host in HOSTS:
        numbered = [line for line in lines if line.startswith(f"{host}: line ")]
        assert numbered == [f"{host}: line {number} of {host}, {'x' * 50}" for number in range(1000)]
        assert f"{host}: long {'y' * 100_000}" in lines
        assert any(line.startswith(f"{host}: the last words of {host}") for line in lines)
    assert jobs.platform.log_locations(name).keys() == set(HOSTS)


def test_nothing_remains_outside_the_jobs_directory(jobs, name):
    until(lambda: not jobs.remains(name))
    until(lambda: not jobs.job_folder(name).hosts.exists())
