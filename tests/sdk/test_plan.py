"""What a plan says of the hosts of a job, on every platform, and of sources and interpreters that cannot be read."""

import bz2
import gzip
import json
import lzma
import re
import sys
import textwrap
from importlib.resources import files

import pytest
from fakes.estimators import ROLE

from scriptmode import MPI, Estimator, JobExistsError, MultiWorkerMirrored, ParameterServer, Plan, SpecError
from scriptmode._core.aws.instance_gpus import gpu_count
from scriptmode._core.request.render import render_request
from scriptmode.testing import FakeSageMaker
from scriptmode_local import LocalPlatform

IMAGE = "registry/team/tf:2.15"


@pytest.fixture
def ours(code, data_dir):
    """Make an estimator on an instance type; nothing of the machine's settings is read, nothing leaves it."""

    def make(instance_type="ml.c5.xlarge", instance_count=2, **arguments):
        if instance_type.startswith("ml."):
            arguments = {"sagemaker_session": FakeSageMaker(), "image_uri": IMAGE, "role": ROLE, **arguments}
        return Estimator(
            entry_point="train.py",
            source_dir=code,
            instance_type=instance_type,
            instance_count=instance_count,
            **arguments,
        )

    return make


@pytest.mark.parametrize("kind", ["ml.c5.xlarge", "local", "local_process"])
@pytest.mark.parametrize(
    ("distribution", "roles"),
    [
        (None, ["script", "script"]),
        (ParameterServer(), ["master, ps", "worker, ps"]),
        (ParameterServer(evaluator=True), ["chief, ps", "worker, evaluator, ps"]),
        (ParameterServer(coordinator=True), ["chief, worker, ps", "worker, ps"]),
        (MultiWorkerMirrored(), ["worker 0", "worker 1"]),
        (MPI(2), ["mpirun, ranks 0-1", "ranks 2-3"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_host_has_its_part(ours, kind, distribution, roles):
    image = {"image_uri": IMAGE} if kind == "local" else {}
    made = ours(kind, distribution=distribution, **image)
    plan = made.plan(job_name="job-1")
    assert isinstance(plan, Plan)
    assert plan.request == made.request(job_name="job-1")
    assert [host.roles for host in plan.hosts.values()] == roles
    first, second = plan.hosts.values()
    assert first.files["input/config/resourceconfig.json"]["current_host"] == "algo-1"
    assert second.files["input/config/resourceconfig.json"]["hosts"] == ["algo-1", "algo-2"]
    assert (first.base_dir == "/opt/ml") == (kind != "local_process")
    names = [process.name for process in (*first.launch.trainers, *first.launch.services)]
    assert names == (["mpirun"] if isinstance(distribution, MPI) else roles[0].replace(" 0", "").split(", "))


def test_containers_of_this_machine_find_the_source_below_opt_ml(ours, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s" * 20)
    plan = ours("local", image_uri=IMAGE, environment={"NOTE": "s" * 20}).plan()
    files = plan.hosts["algo-2"].files
    assert plan.source.uri.startswith("file://")
    submitted = files["input/config/hyperparameters.json"]["sagemaker_submit_directory"]
    assert submitted == '"/opt/ml/input/source/sourcedir.tar.gz"'
    config = files["input/config/scriptmode.json"]
    assert config == {"secret": "******", "isolate_requirements": True}
    # The caller's credentials, which containers of this machine are given.
    assert "s" * 20 not in str(plan)


def test_a_source_that_is_stored_already_is_not_fetched(code):
    fake = FakeSageMaker()
    arguments = {"sagemaker_session": fake, "image_uri": IMAGE, "role": ROLE}
    made = Estimator(entry_point="a.py", source_dir="s3://b/s.tar.gz", instance_type="ml.c5.xlarge", **arguments)
    plan = made.plan()
    assert plan.source.files is None
    assert any("s3://b/s.tar.gz is not opened" in each for each in plan.assumed)
    assert fake.calls == []


def test_a_job_of_an_image_with_its_own_program_is_planned():
    made = Estimator(IMAGE, ROLE, 2, "ml.c5.xlarge", sagemaker_session=FakeSageMaker(), hyperparameters={"pin": "1234"})
    plan = made.plan()
    assert [host.roles for host in plan.hosts.values()] == ["", ""]
    assert plan.hosts["algo-1"].launch.main is None
    assert plan.source is None
    assert plan.hosts["algo-1"].files["input/config/hyperparameters.json"]["pin"] == "1234"
    assert f"  runs     the program of the image\n  hosts    Amazon SageMaker\n  image    {IMAGE}\n" in str(plan)


def test_gpus_are_as_many_as_the_service_of_the_instances_answers():
    """An answer of DescribeInstanceTypes is part of moto."""
    answer = json.loads(gzip.decompress((files("moto") / "ec2/resources/instance_types.json.gz").read_bytes()))
    counted = {
        f"ml.{name}": sum(gpu["Count"] for gpu in (kind.get("GpuInfo") or {}).get("Gpus", ()))
        for name, kind in answer.items()
    }
    known = {name: gpu_count(name) for name in counted if gpu_count(name) is not None}
    assert known == {name: counted[name] for name in known}
    assert {"ml.g5.48xlarge", "ml.p5.48xlarge", "ml.m5.large"} <= set(known)
    assert [gpu_count(name) for name in ("local", "local_gpu", "ml.trn1.2xlarge", "ml.p9.2xlarge")] == [0, *[None] * 3]


def test_ranks_are_as_many_as_the_gpus_of_an_instance_type_where_that_is_known(ours):
    plan = ours("ml.p3.8xlarge", distribution=MPI()).plan()
    assert plan.hosts["algo-2"].roles == "ranks 4-7"
    assert plan.assumed == ()
    assert ours("ml.next9.huge", distribution=MPI()).plan().assumed == (
        "the number of GPUs of ml.next9.huge is unknown: planned as 0",
    )


def test_what_a_host_would_refuse_is_an_error_of_the_plan(ours):
    both = {"HyperParameters": {"sagemaker_mpi_enabled": "true"}}
    made = ours(distribution=ParameterServer(), additional_request_fields=both)
    with pytest.raises(SpecError, match="algo-1 would refuse to run: two distributions at once"):
        made.plan()


def test_an_input_in_s3_needs_no_credentials_to_be_planned(ours, no_credentials):
    plan = ours("local_process").plan("s3://bucket/train")
    assert plan.hosts["algo-1"].files["input/config/inputdataconfig.json"].keys() == {"training"}


def test_a_name_that_is_taken_is_an_error_of_the_plan_too(ours):
    ours("local_process", 1).fit(job_name="job-1", logs=False)
    with pytest.raises(JobExistsError, match="there is a training job named 'job-1' already; use another name"):
        ours("local_process").plan(job_name="job-1")


def test_nothing_is_left_and_nothing_is_called(ours, code, tmp_path, monkeypatch):
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    for kind, distribution in (("local_process", MPI(2)), ("ml.c5.xlarge", ParameterServer())):
        made = ours(kind, distribution=distribution)
        assert str(made.plan(job_name="job-1"))
        assert made.latest_training_job is None
        if kind.startswith("ml."):
            assert made._session.calls == []
    assert not (tmp_path / "data").exists()
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress], ids=lambda each: each.__module__)
def test_a_broken_archive_is_a_note_of_the_plan(tmp_path, compress):
    archive = tmp_path / "sourcedir.tar.gz"
    archive.write_bytes(compress(b"train.py" * 1000)[:20] + b"\xff" * 500)
    platform = LocalPlatform(data_dir=tmp_path / "data")
    uri = archive.as_uri()
    made = Estimator(entry_point="train.py", source_dir=uri, instance_type="local_process", platform=platform)
    assert any(f"the source at {uri} is not opened: " in each for each in made.plan().assumed)


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
    known = json.loads(json.dumps(files))
    cluster = known["input/config/scriptmode.json"]
    cluster["secret"] = "******"
    for host in cluster["hosts"].values():
        host["ports"] = dict.fromkeys(host["ports"], 0)
    return known


@pytest.fixture
def plan_and_run(tmp_path):
    """Return a function that plans a job and then runs it, and returns the plan and what each process saw."""

    def start(distribution):
        for name, path, text in (("code", "train.py", textwrap.dedent(SCRIPT)), ("in", "data", "1"), ("seen", "", "")):
            (tmp_path / name).mkdir()
            if path:
                (tmp_path / name / path).write_text(text)
        estimator = Estimator(
            entry_point="train.py",
            source_dir=str(tmp_path / "code"),
            instance_type="local_process",
            instance_count=2,
            distribution=distribution,
            hyperparameters={"epochs": 3, "out": "/opt/ml/model/x", "name": "it's"},
            environment={"SEEN": str(tmp_path / "seen")},
            checkpoint_s3_uri=f"file://{tmp_path}/checkpoints",
            platform=LocalPlatform(data_dir=tmp_path / "data dir"),
        )
        plan = estimator.plan(f"file://{tmp_path}/in", job_name="job-1")
        assert not (tmp_path / "data dir").exists()
        job = estimator.fit(f"file://{tmp_path}/in", job_name="job-1", logs=False)
        assert render_request(estimator.platform._store.find(job.name).read_job().request) == plan.request
        seen = [json.loads(path.read_text()) for path in (tmp_path / "seen").iterdir()]
        for each in seen:
            assert known_before(each["files"]) == plan.hosts[each["host"]].files
        return plan, seen

    return start


def test_the_processes_that_ran_are_the_ones_that_were_planned(plan_and_run):
    plan, seen = plan_and_run(MultiWorkerMirrored(evaluator=True))
    planned = sorted(
        (name, process.argv, process.cwd, process.env["TF_CONFIG"])
        for name, host in plan.hosts.items()
        for process in (*host.launch.trainers, *host.launch.services)
    )
    ran = sorted((each["host"], tuple(each["argv"]), each["cwd"], without_ports(each["TF_CONFIG"])) for each in seen)
    assert ran == planned
    assert [host.roles for host in plan.hosts.values()] == ["worker 0", "worker 1, evaluator"]


def test_the_work_for_a_plan_grows_with_the_number_of_hosts_and_not_with_its_square(ours):
    def count_calls(hosts):
        counted = 0

        def count(_frame, event, _argument):
            nonlocal counted
            counted += event == "call"

        made = ours(instance_count=hosts, distribution=ParameterServer())
        sys.setprofile(count)
        try:
            str(made.plan())
        finally:
            sys.setprofile(None)
        return counted

    count_calls(2)
    assert count_calls(800) < 3 * count_calls(400)
