"""What a plan says of the hosts of a job, on every platform."""

import gzip
import json
import venv
from importlib.resources import files
from pathlib import Path

import pytest
from fakes.estimators import ROLE

import scriptmode_runtime
from scriptmode import (
    MPI,
    DataError,
    Estimator,
    InstanceGroup,
    JobExistsError,
    MultiWorkerMirrored,
    ParameterServer,
    Plan,
    SpecError,
)
from scriptmode.planning.assumptions import gpu_count
from scriptmode.platforms.local import LocalPlatform
from scriptmode.testing import FakeSageMaker

IMAGE = "registry/team/tf:2.15"


@pytest.fixture
def ours(code, tmp_path, monkeypatch):
    """Make an estimator on an instance type; nothing of the machine's settings is read, nothing leaves it."""
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))

    def make(instance_type="ml.c5.xlarge", instance_count=2, **arguments):
        if "instance_groups" in arguments:
            instance_type = instance_count = None
        elsewhere = str(instance_type).startswith("ml.") or "instance_groups" in arguments
        if elsewhere:
            arguments = {"sagemaker_session": FakeSageMaker(), "image_uri": IMAGE, "role": ROLE, **arguments}
        sizes = {"instance_type": instance_type, "instance_count": instance_count}
        return Estimator(entry_point="train.py", source_dir=code, **sizes, **arguments)

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
    plan = ours(kind, distribution=distribution, **image).plan(job_name="job-1")
    assert isinstance(plan, Plan)
    assert [host.roles for host in plan.hosts.values()] == roles
    first, second = plan.hosts.values()
    assert first.files["input/config/resourceconfig.json"]["current_host"] == "algo-1"
    assert second.files["input/config/resourceconfig.json"]["hosts"] == ["algo-1", "algo-2"]
    assert (first.base_dir == "/opt/ml") == (kind != "local_process")
    names = [process.name for process in first.processes]
    assert names == (["mpirun"] if isinstance(distribution, MPI) else roles[0].replace(" 0", "").split(", "))


def test_the_request_is_the_one_that_fit_sends(ours):
    made = ours(hyperparameters={"password": "hunter2hunter2"}, distribution=ParameterServer())
    plan = made.plan({"train": "s3://bucket/train"}, job_name="job-1")
    assert plan.request == made.request({"train": "s3://bucket/train"}, job_name="job-1")
    assert plan.job_name == "job-1"
    files = plan.hosts["algo-2"].files
    assert files["input/config/hyperparameters.json"]["sagemaker_program"] == '"train.py"'
    assert files["input/config/inputdataconfig.json"]["train"]["TrainingInputMode"] == "File"
    assert files["input/config/resourceconfig.json"]["network_interface_name"] == "eth0"
    assert "input/config/scriptmode.json" not in files


def test_a_tf_config_is_in_the_variables_of_its_process(ours):
    plan = ours(distribution=ParameterServer()).plan()
    trainer, server = plan.hosts["algo-2"].processes
    config = json.loads(trainer.env["TF_CONFIG"])
    assert config["task"] == {"type": "worker", "index": 0}
    assert config["cluster"]["ps"] == ["algo-1:2223", "algo-2:2223"]
    assert json.loads(server.env["TF_CONFIG"])["task"] == {"type": "ps", "index": 1}


def test_an_mpirun_line_is_there_in_full(ours):
    made = ours("ml.p3.16xlarge", distribution=MPI(custom_mpi_options="-x A=b --verbose"))
    first, second = made.plan().hosts.values()
    argv = first.main.argv
    assert argv[:3] == ("mpirun", "-np", "16")
    assert "A=b" in argv
    assert argv[-3:] == ("python", "-m", "scriptmode_runtime.rank")
    assert first.writes["/tmp/scriptmode/hosts"] == "algo-1 slots=8\nalgo-2 slots=8\n"
    assert second.main is None
    assert [wait.event for wait in second.before] == ["hosts_ready"]


def test_groups_with_roles_have_one_role_each(ours):
    groups = [
        InstanceGroup("leader", "ml.c5.xlarge", 1),
        InstanceGroup("large", "ml.p3.2xlarge", 2),
        InstanceGroup("memory", "ml.r5.xlarge", 1),
    ]
    roles = {"chief": "leader", "worker": "large", "ps": "memory"}
    plan = ours(instance_groups=groups, distribution=ParameterServer(coordinator=True, roles=roles)).plan()
    assert [(host.roles, host.instance_type) for host in plan.hosts.values()] == [
        ("chief", "ml.c5.xlarge"),
        ("worker", "ml.p3.2xlarge"),
        ("worker", "ml.p3.2xlarge"),
        ("ps", "ml.r5.xlarge"),
    ]


def test_groups_beside_the_distribution_run_the_script_alone(ours):
    groups = [InstanceGroup("data", "ml.c5.xlarge", 1), InstanceGroup("trainers", "ml.c5.xlarge", 2)]
    plan = ours(instance_groups=groups, distribution=MPI(1, instance_groups=("trainers",))).plan()
    assert [host.roles for host in plan.hosts.values()] == ["script", "mpirun, rank 0", "rank 1"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ml.c5.xlarge", "local_process"])
def test_two_hundred_hosts_are_planned(ours, kind):
    plan = ours(kind, 200, distribution=ParameterServer()).plan()
    assert len(plan.hosts) == 200
    assert plan.hosts["algo-200"].roles == "worker, ps"
    assert json.loads(plan.hosts["algo-200"].main.env["TF_CONFIG"])["task"]["index"] == 198


def test_hosts_of_one_machine_know_no_ports_and_no_secret_yet(ours):
    plan = ours("local_process", distribution=ParameterServer()).plan()
    told = plan.hosts["algo-1"].files["input/config/scriptmode.json"]
    assert set(told["hosts"]["algo-2"]["ports"].values()) == {0}
    assert told["secret"] == "******"
    assert any("are chosen when the job starts" in each for each in plan.assumed)


def test_containers_of_this_machine_find_the_source_below_opt_ml(ours, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s" * 20)
    plan = ours("local", image_uri=IMAGE, environment={"NOTE": "s" * 20}).plan()
    files = plan.hosts["algo-2"].files
    assert plan.source.uri.startswith("file://")
    submitted = files["input/config/hyperparameters.json"]["sagemaker_submit_directory"]
    assert submitted == '"/opt/ml/input/source/sourcedir.tar.gz"'
    told = files["input/config/scriptmode.json"]
    assert told == {
        "secret": "******",
        "isolate_requirements": True,
        "environments": "/var/cache/scriptmode/environments",
    }
    # The caller's credentials, which containers of this machine are given.
    assert "s" * 20 not in str(plan)


def test_requirements_are_installed_first(ours, code):
    Path(code, "requirements.txt").write_text("numpy\n")
    [host] = ours("local_process", 1).plan().hosts.values()
    assert [process.name for process in host.preparation] == ["requirements"]
    assert host.main.argv[0] == f"{host.base_dir}/overlay/bin/python"
    [host] = ours("local", 1, image_uri=IMAGE).plan().hosts.values()
    assert host.main.argv[0] == "/opt/ml/overlay/bin/python"
    [host] = ours("ml.c5.xlarge", 1).plan().hosts.values()
    assert host.preparation[-1].argv[-2:] == ("-r", "/opt/ml/code/requirements.txt")
    assert host.main.argv[0] == "python"


def test_the_archive_is_identified_by_its_files(ours, code):
    plan = ours().plan()
    assert plan.source.files == {"train.py": 8}
    assert plan.source.total == 8
    assert len(plan.source.digest) == 64
    assert plan.source.uri.endswith(f"/{plan.source.digest}/sourcedir.tar.gz")
    assert plan.source.size > 0


def test_a_source_that_is_stored_already_is_not_fetched(code):
    fake = FakeSageMaker()
    arguments = {"sagemaker_session": fake, "image_uri": IMAGE, "role": ROLE}
    made = Estimator(entry_point="a.py", source_dir="s3://b/s.tar.gz", instance_type="ml.c5.xlarge", **arguments)
    plan = made.plan()
    assert plan.source.files is None
    assert [process.name for process in plan.hosts["algo-1"].preparation] == ["source"]
    assert any("s3://b/s.tar.gz is not opened" in each for each in plan.assumed)
    assert fake.calls == []


def test_a_job_of_an_image_with_its_own_program_is_planned():
    made = Estimator(IMAGE, ROLE, 2, "ml.c5.xlarge", sagemaker_session=FakeSageMaker(), hyperparameters={"pin": "1234"})
    plan = made.plan()
    assert [host.roles for host in plan.hosts.values()] == ["", ""]
    assert plan.hosts["algo-1"].processes == ()
    assert plan.source is None
    assert "its own program" in plan.assumed[0]
    assert plan.hosts["algo-1"].files["input/config/hyperparameters.json"]["pin"] == "1234"


@pytest.mark.parametrize(
    ("instance_type", "count"),
    [
        ("ml.p2.16xlarge", 16), ("ml.p3.2xlarge", 1), ("ml.p3.16xlarge", 8), ("ml.g5.12xlarge", 4), ("ml.g6e.48xlarge", 8), ("ml.m5.large", 0),
        ("ml.r7i.large", 0), ("local", 0), ("ml.trn1.2xlarge", None), ("ml.p9.2xlarge", None), ("local_gpu", None),
    ],
)  # fmt: skip
def test_gpus_are_known_for_known_types_alone(instance_type, count):
    assert gpu_count(instance_type) == count


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"instance_type": "ml.p3.8xlarge", "distribution": MPI()}, "ml.p3.8xlarge has 4 GPUs"),
        ({"instance_type": "ml.p9.xlarge", "distribution": MPI()}, "the number of GPUs of ml.p9.xlarge is unknown"),
        ({"distribution": MPI(1), "image_uri": "scriptmode:2.21.0-0"}, "Open MPI 5"),
        ({"distribution": MPI(1)}, "Open MPI 4"),
        ({"distribution": ParameterServer()}, "SCRIPTMODE_JOB_SECRET is generated"),
        ({"container_entry_point": ["/run.sh"]}, "entry point or arguments start `train`"),
    ],
    ids=str,
)
def test_assumptions_of_a_plan_are_named(ours, arguments, said):
    assert any(said in each for each in ours(**arguments).plan().assumed)


def test_what_a_host_would_refuse_is_an_error_of_the_plan(ours):
    both = {"HyperParameters": {"sagemaker_mpi_enabled": "true"}}
    made = ours(distribution=ParameterServer(), additional_request_fields=both)
    with pytest.raises(SpecError, match="algo-1 would refuse to run: two distributions at once"):
        made.plan()


def test_a_machine_without_mpirun_is_an_error_of_the_plan(ours, tmp_path, monkeypatch):
    venv.EnvBuilder(symlinks=True).create(tmp_path / "bare")
    monkeypatch.setenv("PYTHONPATH", str(Path(scriptmode_runtime.__file__).parents[1]))
    monkeypatch.setenv("PATH", "/nowhere")
    made = ours("local_process", distribution=MPI(1), platform=LocalPlatform(python=tmp_path / "bare/bin/python"))
    with pytest.raises(SpecError, match="mpirun was found neither beside the interpreter nor on PATH"):
        made.plan()


def test_an_input_of_this_machine_that_is_missing_is_an_error_of_the_plan(ours):
    with pytest.raises(DataError, match="/no/such/folder"):
        ours("local_process").plan("file:///no/such/folder")


def test_an_input_in_s3_needs_no_credentials_to_be_planned(ours, no_credentials):
    plan = ours("local_process").plan("s3://bucket/train")
    assert plan.hosts["algo-1"].files["input/config/inputdataconfig.json"].keys() == {"training"}
    assert plan.assumed[-1].startswith("channel 'training': s3://bucket/train exists, and")


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
