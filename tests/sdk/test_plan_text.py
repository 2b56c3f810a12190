"""A plan as people and programs read it."""

import json
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
    lines = str(two).splitlines()
    assert len(lines) <= 60
    # A place is not broken: it is to be copied.
    assert [line for line in lines if len(line) > 118 and "sourcedir.tar.gz" not in line] == []


def test_the_text_shows_request_source_and_hosts(two):
    text = str(two)
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
    ):
        assert part in text, part


def test_no_secret_is_shown_and_the_request_is_exact(two):
    assert two.request["HyperParameters"]["password"] == json.dumps(SECRET)
    assert two.request["Environment"]["API_KEY"] == "k" * 20
    for text in (str(two), json.dumps(two.to_dict()), repr(two), two._repr_html_()):
        assert SECRET not in text
        assert "k" * 20 not in text
    assert two.to_dict()["request"]["Environment"] == {"API_KEY": "******"}


def test_the_first_three_and_the_last_of_many_hosts_are_shown(many):
    text = str(many)
    shown = [line.split(":")[0].strip() for line in text.splitlines() if line.startswith("  algo-")]
    assert shown == ["algo-1", "algo-2", "algo-3", "algo-4 to algo-199", "algo-200"]
    assert "algo-4 to algo-199: 196 similar hosts: 196 x ranks n" in text
    assert "algo-200: ranks 796-799" in text
    assert "hostfile              algo-1 slots=4, algo-2 slots=4, algo-3 slots=4, ... 196 more ..." in text
    assert len(text.splitlines()) < 100


def test_the_mpirun_line_can_be_run_as_it_is_shown(many):
    lines = str(many).splitlines()
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
    assert "&quot;" in shown._repr_html_()


def test_an_image_with_its_own_program_is_named():
    text = str(Estimator("registry/own:1", ROLE, 1, "ml.c5.xlarge", sagemaker_session=FakeSageMaker()).plan())
    assert "none: the image has its own program" in text
    assert "algo-1: the program of the image" in text


def test_what_a_terminal_would_obey_is_spelled_out(tmp_path):
    name = "line\nbreak \x1b[31m \udc80.py"
    Path(tmp_path, "train.py").write_text("")
    Path(tmp_path, name).write_text("")
    shown = made(tmp_path, 1, None, metric_definitions=[{"Name": "a", "Regex": "b"}])
    shown.set_hyperparameters(text="two\nlines\t\x1b[2J")
    text = str(shown.plan(job_name="job-1"))
    assert all(line.isprintable() for line in text.splitlines())
    assert "line\\nbreak \\u001b[31m \\udc80.py (0 bytes)" in text
    assert "'two\\nlines\\t\\u001b[2J'" in text
