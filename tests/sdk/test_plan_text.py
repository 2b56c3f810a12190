"""A plan as people and programs read it."""

import json
import re
from pathlib import Path

import pytest
from fakes.estimators import ROLE

from scriptmode import MPI, ParameterServer, TensorFlow
from scriptmode.testing import FakeSageMaker

SECRET = "hunter2hunter2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("code")
    Path(made, "train.py").write_text("print(1)")
    return made


def made(folder, count, distribution, kind=TensorFlow, **arguments):
    return kind(
        entry_point="train.py",
        source_dir=str(folder),
        instance_count=count,
        **{"instance_type": "ml.c5.xlarge", "image_uri": "registry/team/tf:2.15", "role": ROLE, **arguments},
        distribution=distribution,
        hyperparameters={"epochs": 3, "password": SECRET},
        environment={"API_KEY": "k" * 20},
        sagemaker_session=FakeSageMaker(),
        checkpoint_s3_uri="s3://bucket/kept",
    )


@pytest.fixture(scope="module")
def two(folder):
    return made(folder, 2, ParameterServer(coordinator=True)).plan({"train": "s3://bucket/train"}, job_name="job-1")


@pytest.fixture(scope="module")
def many(folder):
    return made(folder, 200, MPI(4)).plan(job_name="job-1")


def test_the_text_is_the_essential_lines(two):
    assert str(two).splitlines() == [
        "Training job job-1: 2 x ml.c5.xlarge",
        f"  runs     python train.py --epochs 3 --model_dir {two.request['OutputDataConfig']['S3OutputPath']}/job-1/model --password",
        "             '******'",
        "  hosts    Amazon SageMaker",
        "           algo-1: chief, worker, ps",
        "           algo-2: worker, ps",
        "  image    registry/team/tf:2.15",
        "  source   1 file, 8 bytes: train.py",
        "  inputs   train: s3://bucket/train, File",
        f"  output   {two.request['OutputDataConfig']['S3OutputPath']}",
        "           checkpoints: s3://bucket/kept, copied to /opt/ml/checkpoints at the start and from there while the job runs",
        "  limits   at most 1 d of training; cost: at most 48 instance hours",
        "",
        "The whole plan: plan.to_dict()",
    ]


@pytest.mark.parametrize("width", [40, 60, 120])
def test_the_text_fits_the_width_but_for_uris(many, two, width):
    for plan in (many, two):
        lines = plan.text(width=width).splitlines()
        assert [line for line in lines if len(line) > width and " " in line.strip().partition(": ")[2]] == []
        assert len(lines) <= 22


def test_the_hosts_of_spot_training_have_two_limits(folder):
    plan = made(folder, 2, None, use_spot_instances=True, max_run=1800, max_wait=7200).plan(job_name="job-1")
    assert "at most 30 min of training, 2 h with waiting; cost: at most 1 instance hours of spot\n" in str(plan)


def test_no_secret_is_shown_and_the_request_is_exact(two):
    assert two.request["HyperParameters"]["password"] == json.dumps(SECRET)
    assert two.request["Environment"]["API_KEY"] == "k" * 20
    for text in (str(two), json.dumps(two.to_dict()), repr(two), two._repr_html_()):
        assert SECRET not in text
        assert "k" * 20 not in text
    assert two.to_dict()["request"]["Environment"] == {"API_KEY": "******"}


def test_everything_is_there_for_programs(two):
    document = json.loads(json.dumps(two.to_dict()))
    assert sorted(document) == ["assumed", "hosts", "request", "source"]
    assert document["hosts"]["algo-1"]["launch"]["main"]["env"]["SM_HP_PASSWORD"] == "******"
    host = document["hosts"]["algo-2"]
    assert host["roles"] == "worker, ps"
    assert host["launch"]["services"][0]["argv"][-1] == "scriptmode_runtime.tensorflow.server"
    assert host["files"]["input/config/resourceconfig.json"]["current_host"] == "algo-2"
    assert document["source"]["files"] == {"train.py": 8}


@pytest.mark.parametrize(
    ("distribution", "alone"),
    [
        (MPI(4), 2), (ParameterServer(evaluator=True), 3), (ParameterServer(coordinator=True), 2),
        (ParameterServer(ps=3), 3),
    ],
)  # fmt: skip
def test_hosts_of_a_large_job_that_differ_by_their_numbers_alone_share_a_plan(folder, distribution, alone):
    plan = made(folder, 65, distribution).plan(job_name="job-1")
    hosts = plan.to_dict()["hosts"]
    assert list(hosts) == list(plan.hosts)
    assert sum("like" not in host for host in hosts.values()) == alone
    kinds = {name: re.sub(r"\d+", "N", host.roles) for name, host in plan.hosts.items()}
    assert {kinds[name] for name, host in hosts.items() if host == {"like": "algo-2"}} == {kinds["algo-2"]}
    assert all("files" in host for host in made(folder, 64, distribution).plan().to_dict()["hosts"].values())


def test_what_a_terminal_would_obey_is_spelled_out(tmp_path):
    name = "line\nbreak \x1b[31m \udc80.py"
    Path(tmp_path, "train.py").write_text("")
    Path(tmp_path, name).write_text("")
    shown = made(tmp_path, 1, None, metric_definitions=[{"Name": "a", "Regex": "b"}])
    shown.set_hyperparameters(text="two\nlines\t\x1b[2J")
    text = shown.plan(job_name="job-1").text()
    assert all(line.isprintable() for line in text.splitlines())
    assert "line\\nbreak \\u001b[31m \\udc80.py" in text
    assert "'two\\nlines\\t\\u001b[2J'" in text


def test_the_largest_files_of_a_large_source_are_named_before_it_is_packed(tmp_path):
    Path(tmp_path, "train.py").write_text("print(1)")
    for number in range(4):
        with Path(tmp_path, f"weights-{number}").open("wb") as file:
            file.truncate(15 * 10**6)
    estimator = made(tmp_path, 1, None)
    with pytest.warns(UserWarning, match=r"the source has 60.0 MB.*weights-0 \(15.0 MB\), .*\.scriptmodeignore"):
        plan = estimator.plan(job_name="job-1")
    assert plan.source.total == 60 * 10**6 + 8
