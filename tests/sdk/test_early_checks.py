"""What would fail on the hosts is refused, or warned of, before a job starts."""

import re
import sys
from pathlib import Path

import pytest
from fakes.estimators import ROLE

from scriptmode import (
    MPI,
    ContinuousParameter,
    Estimator,
    MultiWorkerMirrored,
    ParameterServer,
    SourceError,
    SpecError,
    TrainingInput,
    TrainingJob,
    Tuner,
)
from scriptmode.platforms.local import LocalPlatform
from scriptmode.testing import FakeSageMaker


@pytest.fixture
def made(tmp_path, monkeypatch, no_settings, code):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))

    def make(**arguments):
        return Estimator(
            **{"entry_point": "train.py", "source_dir": code, "instance_type": "local_process", **arguments}
        )

    return make


def folder_of(tmp_path, files):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)


INTEROP = "TF_NUM_INTEROP_THREADS"
BROKEN = 'import os\nprint "epoch"\n'
NOT_COMPILED = """\
entry_point 'train.py' cannot be compiled by the hosts' Python, {python}
  File "code/train.py", line 2
    print "epoch"
    ^^^^^^^^^^^^^
SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?"""


@pytest.mark.parametrize("python", [sys.executable, "another"])
def test_a_syntax_error_is_shown_as_at_the_prompt_before_a_job_exists(made, tmp_path, monkeypatch, python):
    folder_of(tmp_path, {"code/train.py": BROKEN})
    monkeypatch.chdir(tmp_path)
    if python == "another":  # the same interpreter by another path, which answers in a process of its own
        python = str(tmp_path / "python")
        Path(python).write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        Path(python).chmod(0o755)
    estimator = made(source_dir="code", platform=LocalPlatform(python=python))
    tuner = Tuner(estimator, "loss", {"rate": ContinuousParameter(0, 1)}, [{"Name": "loss", "Regex": "loss=([0-9.]+)"}])
    for start in (estimator.fit, estimator.plan, tuner.fit):
        with pytest.raises(SourceError) as raised:
            start()
        # Carets have their length since Python 3.10.
        assert re.sub(r"\^+", "^", str(raised.value)) == re.sub(r"\^+", "^", NOT_COMPILED.format(python=python))
    assert TrainingJob.list() == []


#: Source, its arguments, and a warning; "" for none.
SCRIPTS = {
    "ranks per GPU": ({"train.py": ""}, {"instance_type": "ml.p3.2xlarge", "distribution": MPI(64)},
        "processes_per_host 64 is more than the 1 GPU of ml.p3.2xlarge, which the ranks of a host share; use at most 1"),
    "ranks per core": ({"train.py": ""}, {"instance_type": "ml.m5.xlarge", "distribution": MPI(64)},
        "is more than the 4 vCPUs of ml.m5.xlarge"),
    "ranks that fit": ({"train.py": ""}, {"instance_type": "ml.p3.16xlarge", "distribution": MPI(8)}, ""),
    "one thread": ({"train.py": ""}, {"distribution": ParameterServer(), "environment": {INTEROP: "1"}},
        "TF_NUM_INTEROP_THREADS=1: parameter servers can wait for each other for ever; set at least 2, or leave it out"),
    "one thread of workers": ({"train.py": ""}, {"distribution": MultiWorkerMirrored(), "environment": {INTEROP: "1"}}, ""),
    "not in an image of another Python": ({"train.py": BROKEN}, {"instance_type": "ml.m5.xlarge"},
        "train.py cannot be compiled by this Python"),
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=list(SCRIPTS))
def test_what_would_go_wrong_on_the_hosts_is_said_before_a_job_starts(made, tmp_path, monkeypatch, capsys, script):
    files, more, message = script
    folder_of(tmp_path / "code", files)
    monkeypatch.chdir(tmp_path)
    if more.get("instance_type", "").startswith("ml."):
        more = {"image_uri": "x/scriptmode:1", "role": ROLE, "sagemaker_session": FakeSageMaker(), **more}
    made(**{"source_dir": "code", **more}).plan()
    printed = capsys.readouterr().err
    assert message.format(python=sys.executable) in printed
    assert bool(message) == bool(printed)


def test_one_thread_of_the_shell_is_warned_of_where_hosts_have_its_variables(made, monkeypatch, capsys):
    monkeypatch.setenv(INTEROP, "1")
    made(distribution=ParameterServer(), instance_count=2).plan()
    assert f"{INTEROP}=1: " in capsys.readouterr().err
    made(
        distribution=ParameterServer(), instance_type="ml.m5.large", image_uri="x/scriptmode:1", role=ROLE,
        sagemaker_session=FakeSageMaker(),
    ).plan()  # fmt: skip
    assert capsys.readouterr().err == ""


def test_mpi_without_mpirun_is_refused_before_a_job_exists(made, monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        SpecError, match="distribution is MPI, and mpirun was found neither beside .*; install Open MPI"
    ):
        made(distribution=MPI(2), platform=LocalPlatform(python=python)).fit()
    assert TrainingJob.list() == []


class Parameter(str):
    """As ParameterString in old releases of the SageMaker SDK v2: a string, too."""

    __slots__ = ()
    __module__ = "sagemaker.workflow.parameters"


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"instance_type": Parameter("ml.m5.large")}, "instance_type"),
        ({"hyperparameters": {"rate": Parameter("r")}}, "hyperparameters['rate']"),
        ({"distribution": {"mpi": {"enabled": True, "processes_per_host": Parameter("n")}}}, "distribution['mpi']"),
        ({"train_instance_count": Parameter("n")}, "train_instance_count"),
    ],
)
def test_a_variable_of_a_pipeline_is_refused_as_one(made, arguments, where):
    with pytest.raises(SpecError, match=f"^{re.escape(where)}.* is a pipeline variable, Parameter, and .*request()"):
        made(**arguments)


@pytest.mark.parametrize("given", [lambda: Parameter("s3://b/x"), lambda: TrainingInput(Parameter("s3://b/x"))])
def test_a_variable_of_a_pipeline_is_refused_as_an_input(made, given):
    with pytest.raises(SpecError, match="pipelines are not supported; give a value; ") as raised:
        made().request({"train": given()})
    assert raised.value.argument == "inputs"
