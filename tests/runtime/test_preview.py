"""What every host of a job would run, asked in one process that has no host's folder."""

import json
import subprocess
import sys

import pytest
from fakes.host_folders import write_host

from scriptmode_runtime import environment, user_code
from scriptmode_runtime.host.programs import Mpirun
from scriptmode_runtime.plan import as_document
from scriptmode_runtime.preview import preview
from scriptmode_runtime.strategies import plan_for

BETWEEN_GRAPH = {"sagemaker_parameter_server_enabled": True}
COORDINATOR = {**BETWEEN_GRAPH, "sagemaker_parameter_server_coordinator": True}
MIRRORED = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
MPI = {"sagemaker_mpi_enabled": True}
FOUR = {**MPI, "sagemaker_mpi_num_of_processes_per_host": 4}
FILES = ("hyperparameters", "inputdataconfig", "resourceconfig", "scriptmode")
MACHINE = {"python": "python", "mpirun": ["mpirun", 4], "ssh": None}
ONE_MACHINE = {"hosts": {}, "single_machine": True, "isolate_requirements": True, "secret": "s" * 12}


def read(base):
    config = base / "input" / "config"
    found = {name: config / f"{name}.json" for name in FILES}
    return {f"input/config/{name}.json": json.loads(path.read_text()) for name, path in found.items() if path.exists()}


def asked(tmp_path, count, *, cluster=None, gpus=0, environ=None, **hyperparameters):
    """The question for ``count`` hosts, whose files are written as the platform does, and read back."""
    names = [f"algo-{number + 1}" for number in range(count)]
    hosts = {}
    for name in names:
        base = write_host(tmp_path / name, name, names, None, cluster, sagemaker_program="train.py", **hyperparameters)
        hosts[name] = {"base_dir": "/opt/ml", "files": read(base), "environ": environ or {"PATH": "/bin"}, "gpus": gpus}
    return {"hosts": hosts, "machine": MACHINE, "source": {"train.py": ""}}


def roles(question):
    return [host["roles"] for host in preview({**question, "only_roles": True})["hosts"].values()]


@pytest.mark.parametrize(
    ("count", "asks", "expected"),
    [
        (2, {}, ["script", "script"]),
        (1, BETWEEN_GRAPH, ["script"]),
        (3, BETWEEN_GRAPH, ["master, ps", "worker, ps", "worker, ps"]),
        (2, {**BETWEEN_GRAPH, "sagemaker_parameter_server_evaluator": True}, ["chief, ps", "worker, evaluator, ps"]),
        (1, COORDINATOR, ["chief, worker, ps"]),
        (2, COORDINATOR, ["chief, worker, ps", "worker, ps"]),
        (2, MIRRORED, ["worker 0", "worker 1"]),
        (
            2,
            {**MIRRORED, "sagemaker_multi_worker_mirrored_strategy_evaluator": True},
            ["worker 0", "worker 1, evaluator"],
        ),
        (1, MPI, ["mpirun, rank 0"]),
        (2, FOUR, ["mpirun, ranks 0-3", "ranks 4-7"]),
        (3, {**FOUR, "sagemaker_mpi_num_processes": 5}, ["mpirun, ranks 0-3", "rank 4", "no rank"]),
        (
            2,
            {**FOUR, "sagemaker_mpi_custom_mpi_options": "-map-by node"},
            ["mpirun, ranks as the job's options place them", "ranks as the job's options place them"],
        ),
    ],
    ids=str,
)
def test_a_host_is_called_by_what_it_runs(tmp_path, count, asks, expected):
    assert roles(asked(tmp_path, count, **asks)) == expected


def test_ranks_of_one_machine_belong_to_its_hosts_in_turn_wherever_options_place_them(tmp_path):
    options = {**FOUR, "sagemaker_mpi_custom_mpi_options": "--map-by node"}
    assert roles(asked(tmp_path, 2, cluster=ONE_MACHINE, **options)) == ["mpirun, ranks 0-3", "ranks 4-7"]


def test_each_gpu_has_a_rank_where_the_job_says_no_number(tmp_path):
    assert roles(asked(tmp_path, 2, gpus=2, **MPI)) == ["mpirun, ranks 0-1", "ranks 2-3"]


@pytest.mark.parametrize("asks", [{}, BETWEEN_GRAPH, COORDINATOR, MIRRORED, FOUR], ids=str)
def test_the_answer_is_the_plan_that_each_host_makes_of_its_files(tmp_path, asks):
    question = asked(tmp_path, 2, epochs=3, **asks)
    for name, host in question["hosts"].items():
        host["base_dir"] = str(tmp_path / name)
    for name, told in preview(question)["hosts"].items():
        here = environment.read(str(tmp_path / name), {"PATH": "/bin"})
        here = here._replace(python="python", node=name, mpirun=Mpirun("mpirun", 4))
        here = here._replace(machine=here.machine._replace(gpus=0))
        command = user_code.command(here)
        expected = json.loads(json.dumps(as_document(plan_for(here, command))))
        for process in (told["main"], *told["beside"], *told["services"]):
            if process:
                # What all processes of a host are given is left out.
                process["env"] = {**command.env, **process["env"]}
        for service in expected["services"]:
            service["env"] = {**command.env, **service["env"]}
        if expected["main"]:
            expected["main"]["env"] = {**command.env, **expected["main"]["env"]}
        parts = ("main", "beside", "services", "before", "after")
        assert {part: told[part] for part in parts} == {part: expected[part] for part in parts}


@pytest.mark.parametrize(
    ("source", "starts", "prepares"),
    [
        ({"train.py": ""}, ["python", "train.py"], []),
        ({"train.py": "", "requirements.txt": "numpy"}, ["python", "train.py"], ["requirements"]),
        ({"train.py": "", "setup.py": ""}, ["python", "-m", "train"], ["requirements"]),
        ({"train.py": "", "pyproject.toml": "[tool.ruff]"}, ["python", "train.py"], []),
        ({"train.py": "", "pyproject.toml": "a = 1\n[project]\n"}, ["python", "-m", "train"], ["requirements"]),
    ],
    ids=lambda value: ",".join(value) or "nothing",
)
def test_files_of_the_source_say_how_it_is_started(tmp_path, source, starts, prepares):
    question = {**asked(tmp_path, 1), "source": source}
    [host] = preview(question)["hosts"].values()
    assert host["main"]["argv"] == starts
    assert [process["name"] for process in host["preparation"]] == prepares


@pytest.mark.parametrize(("start", "argv"), [("#!/bin/bash\n", ["./train.sh"]), ("echo", ["/bin/sh", "./train.sh"])])
def test_the_first_line_of_a_shell_script_says_what_runs_it(tmp_path, start, argv):
    question = {**asked(tmp_path, 1), "source": {"train.sh": start}}
    question["hosts"]["algo-1"]["files"]["input/config/hyperparameters.json"]["sagemaker_program"] = '"train.sh"'
    assert preview(question)["hosts"]["algo-1"]["main"]["argv"] == argv


def test_a_source_in_s3_is_fetched_first(tmp_path):
    [host] = preview(asked(tmp_path, 1, sagemaker_submit_directory="s3://bucket/source.tar.gz"))["hosts"].values()
    assert [process["name"] for process in host["preparation"]] == ["source"]
    assert host["preparation"][0]["argv"][-1] == "s3://bucket/source.tar.gz"


@pytest.mark.parametrize(
    ("asks", "said"),
    [
        ({**MPI, **BETWEEN_GRAPH}, "two distributions at once"),
        ({**MPI, "sagemaker_mpi_num_of_processes_per_host": 0}, "integer of at least 1"),
        ({"sagemaker_program": "../train.py"}, "outside the source"),
    ],
    ids=str,
)
def test_a_refused_job_is_the_output(tmp_path, asks, said):
    question = asked(tmp_path, 2)
    parameters = {key: json.dumps(value) for key, value in asks.items()}
    for host in question["hosts"].values():
        host["files"]["input/config/hyperparameters.json"] |= parameters
    refused = preview(question)["refused"]
    assert refused["host"] == "algo-1"
    assert said in refused["message"]


def test_a_machine_without_mpirun_is_refused_as_the_host_would(tmp_path):
    question = asked(tmp_path, 1, **MPI)
    question["machine"] = {**MACHINE, "mpirun": None}
    assert "mpirun was found neither" in preview(question)["refused"]["message"]


def test_no_secret_is_answered(tmp_path):
    question = asked(
        tmp_path, 1, api_key="k" * 20, environ={"PATH": "/bin", "MY_TOKEN": "t" * 20}, note="uses " + "t" * 20
    )
    question |= {"shown": ["p" * 20, {"pin": "1234"}], "named": [{"old_password": "p" * 20}]}
    text = json.dumps(preview(question))
    assert not [letter for letter in "ktp" if letter * 20 in text]
    assert "--api_key" in text


def test_the_module_answers_on_its_output(tmp_path):
    question = json.dumps({**asked(tmp_path, 2, **COORDINATOR), "only_roles": True, "shown": "ü"})
    done = subprocess.run(
        [sys.executable, "-m", "scriptmode_runtime.preview"],
        input=question.encode(), capture_output=True, check=True, timeout=60, cwd="/",
    )  # fmt: skip
    assert json.loads(done.stdout) == {
        "hosts": {"algo-1": {"roles": "chief, worker, ps"}, "algo-2": {"roles": "worker, ps"}},
        "shown": "ü",
    }
    assert not done.stderr
