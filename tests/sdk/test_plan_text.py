"""A plan as people and programs read it."""

import json
import time
from pathlib import Path

import pytest
from fakes.estimators import ROLE

from scriptmode import MPI, Estimator, ParameterServer, TensorFlow
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
    )


@pytest.fixture(scope="module")
def two(folder):
    return made(folder, 2, ParameterServer(coordinator=True)).plan({"train": "s3://bucket/train"}, job_name="job-1")


@pytest.fixture(scope="module")
def many(folder):
    return made(folder, 200, MPI(4)).plan(job_name="job-1")


def test_two_hosts_fit_a_page_of_short_lines(two):
    lines = two.text(full=True).splitlines()
    assert len(lines) <= 130
    # A place is not broken: it is to be copied.
    assert [
        line for line in lines if len(line) > 118 and "sourcedir.tar.gz" not in line and "    SM_" not in line
    ] == []


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
        "  limits   at most 1 d of training; cost: at most 48 instance hours",
        "  assumed  `train` of the image registry/team/tf:2.15 is scriptmode's",
        "           ml.c5.xlarge has no GPUs",
        "           Environment.SCRIPTMODE_JOB_SECRET is generated and added when the job starts",
        "",
        "The whole plan: plan.text(full=True)",
    ]


@pytest.mark.parametrize("width", [40, 60, 120])
def test_the_text_fits_the_width_but_for_uris(many, two, width):
    for plan in (many, two):
        for text in (plan.text(width=width), plan.text(full=True, width=width)):
            assert [
                line for line in text.splitlines() if len(line) > width and " " in line.strip().partition(": ")[2]
            ] == []
        assert len(plan.text(width=width).splitlines()) <= 22


def test_the_hosts_of_spot_training_have_two_limits(folder):
    plan = made(folder, 2, None, use_spot_instances=True, max_run=1800, max_wait=7200).plan(job_name="job-1")
    assert "  limits   at most 30 min of training, 2 h with waiting; cost: at most 1 instance hours of spot\n" in str(
        plan
    )


def test_a_job_of_this_machine_has_no_cost(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path))
    plan = Estimator(entry_point="train.py", source_dir=str(folder), instance_type="local_process").plan()
    assert "  hosts    processes of this machine\n" in str(plan)
    assert "cost" not in str(plan)
    assert "image" not in str(plan)


def test_the_whole_text_shows_request_source_and_hosts(two):
    text = two.text(full=True)
    for part in (
        "Training job job-1: 2 x ml.c5.xlarge",
        '    epochs: "3"',
        '  ResourceConfig: {"InstanceCount": 2, "InstanceType": "ml.c5.xlarge", "VolumeSizeInGB": 30}',
        "  1 file, 8 bytes; packed ",
        "  algo-1: chief, worker, ps (ml.c5.xlarge, /opt/ml)",
        "    hyperparameters.json  same as the request",
        "chief algo-1:2221; ps algo-1:2223, algo-2:2223; worker algo-1:2222, algo-2:2222",
        "runs                  chief 0: GRPC_FAIL_FAST=use_caller python train.py --epochs 3",
        '    resourceconfig.json   same as algo-1, but {"current_host": "algo-2"}',
        "    at the end waits for  trainers ended",
        '    SM_HOSTS=["algo-1","algo-2"]',
        "    SM_HP_PASSWORD=******",
        "    SM_CURRENT_HOST=algo-2",
        "    other variables       same as algo-1",
    ):
        assert part in text, part


def test_no_secret_is_shown_and_the_request_is_exact(two):
    assert two.request["HyperParameters"]["password"] == json.dumps(SECRET)
    assert two.request["Environment"]["API_KEY"] == "k" * 20
    for text in (str(two), two.text(full=True), json.dumps(two.to_dict()), repr(two), two._repr_html_()):
        assert SECRET not in text
        assert "k" * 20 not in text
    assert two.to_dict()["request"]["Environment"] == {"API_KEY": "******"}


def test_the_first_three_and_the_last_of_many_hosts_are_shown(many):
    text = many.text(full=True)
    shown = [line.split(":")[0].strip() for line in text.splitlines() if line.startswith("  algo-")]
    assert shown == ["algo-1", "algo-2", "algo-3", "algo-4 to algo-199", "algo-200"]
    assert "algo-4 to algo-199: 196 similar hosts: 196 x ranks n" in text
    assert "algo-200: ranks 796-799" in text
    assert "hostfile              algo-1 slots=4, algo-2 slots=4, algo-3 slots=4, ... 196 more ..." in text
    assert len(text.splitlines()) < 160
    assert max(map(len, text.splitlines())) < 500


def test_the_mpirun_line_can_be_run_as_it_is_shown(many):
    lines = many.text(full=True).splitlines()
    start = next(number for number, line in enumerate(lines) if "mpirun: mpirun -np 800" in line)
    shown = " ".join(" ".join(lines[start : start + 40]).split()).partition("mpirun: ")[2]
    assert shown.startswith(" ".join(many.hosts["algo-1"].main.argv[:20]).replace("^openib", "'^openib'"))


def test_everything_is_there_for_programs(two, many):
    document = json.loads(json.dumps(two.to_dict()))
    assert sorted(document) == ["assumed", "difference", "hosts", "request", "source"]
    host = document["hosts"]["algo-2"]
    assert host["roles"] == "worker, ps"
    assert host["services"][0]["argv"][-1] == "scriptmode_runtime.tensorflow.server"
    assert host["files"]["input/config/resourceconfig.json"]["current_host"] == "algo-2"
    assert document["source"]["files"] == {"train.py": 8}
    assert len(many.to_dict()["hosts"]) == 200


def test_a_notebook_shows_the_text_escaped(folder):
    shown = made(folder, 1, None, base_job_name="a").plan(job_name="job-1")
    assert repr(shown) == "Plan('job-1': 1 x ml.c5.xlarge)"
    assert shown._repr_html_().startswith("<pre>Training job job-1: 1 x ml.c5.xlarge")
    assert "registry/team/tf:2.15 is scriptmode&#x27;s" in shown._repr_html_()


def test_an_image_with_its_own_program_is_named():
    plan = Estimator("registry/own:1", ROLE, 1, "ml.c5.xlarge", sagemaker_session=FakeSageMaker()).plan()
    assert "none: the image has its own program" in plan.text(full=True)
    assert "algo-1: the program of the image" in plan.text(full=True)
    text = str(plan)
    assert "  runs     the program of the image\n  hosts    Amazon SageMaker\n  image    registry/own:1\n" in text


def test_what_a_terminal_would_obey_is_spelled_out(tmp_path):
    name = "line\nbreak \x1b[31m \udc80.py"
    Path(tmp_path, "train.py").write_text("")
    Path(tmp_path, name).write_text("")
    shown = made(tmp_path, 1, None, metric_definitions=[{"Name": "a", "Regex": "b"}])
    shown.set_hyperparameters(text="two\nlines\t\x1b[2J")
    text = shown.plan(job_name="job-1").text(full=True)
    assert all(line.isprintable() for line in text.splitlines())
    assert "line\\nbreak \\u001b[31m \\udc80.py (0 bytes)" in text
    assert "'two\\nlines\\t\\u001b[2J'" in text


def test_a_large_source_is_planned_without_being_packed(tmp_path):
    Path(tmp_path, "train.py").write_text("print(1)")
    for number in range(30):
        with Path(tmp_path, f"weights-{number}").open("wb") as file:
            file.truncate(10**8)
    estimator = made(tmp_path, 1, None)
    began = time.process_time()
    with pytest.warns(UserWarning, match="the source has 3.0 GB"):
        plan = estimator.plan(job_name="job-1")
    assert time.process_time() - began < 1
    assert plan.source.size is None
    assert plan.source.total == 3 * 10**9 + 8
    assert "  source   31 files, 3.0 GB: weights-0, weights-1, weights-10, ...\n" in plan.text()
    assert "  31 files, 3.0 GB\n  at s3://" in plan.text(full=True)
    assert plan.hosts["algo-1"].main.argv[:2] == ("python", "train.py")
