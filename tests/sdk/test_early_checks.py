"""What would fail on the hosts is refused, or warned of, before a job starts."""

import re
import sys

import pytest
from fakes.estimators import ROLE

from scriptmode import (
    ContinuousParameter,
    Estimator,
    ParameterServer,
    SourceError,
    SpecError,
    TrainingInput,
    TrainingJob,
    Tuner,
)
from scriptmode.testing import FakeSageMaker


@pytest.fixture
def made(tmp_path, monkeypatch, no_settings, code):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))

    def make(**arguments):
        return Estimator(
            **{"entry_point": "train.py", "source_dir": code, "instance_type": "local_process", **arguments}
        )

    return make


@pytest.mark.parametrize(("shell", "job", "is_warned"), [("", "1", True), ("1", "", True), ("1", "2", False)])
def test_one_thread_of_parameter_servers_is_warned_of(made, monkeypatch, capsys, shell, job, is_warned):
    name = "TF_NUM_INTEROP_THREADS"
    monkeypatch.setenv(name, shell)
    made(distribution=ParameterServer(), instance_count=2, environment={name: job} if job else {}).plan()
    assert (f"{name}=1: parameter servers can wait" in capsys.readouterr().err) == is_warned


BROKEN = 'import os\nprint "epoch"\n'
NOT_COMPILED = """\
entry_point 'train.py' cannot be compiled by the hosts' Python, {python}
  File "code/train.py", line 2
    print "epoch"
    ^^^^^^^^^^^^^
SyntaxError: Missing parentheses in call to 'print'. Did you mean print(...)?"""


def test_a_syntax_error_is_shown_as_at_the_prompt_before_a_job_exists(made, tmp_path, monkeypatch):
    (tmp_path / "code" / "train.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    estimator = made(source_dir="code")
    tuner = Tuner(estimator, "loss", {"rate": ContinuousParameter(0, 1)}, [{"Name": "loss", "Regex": "loss=([0-9.]+)"}])
    for start in (estimator.fit, estimator.plan, tuner.fit):
        with pytest.raises(SourceError) as raised:
            start()
        # Carets have their length since Python 3.10.
        assert re.sub(r"\^+", "^", str(raised.value)) == re.sub(r"\^+", "^", NOT_COMPILED.format(python=sys.executable))
    assert TrainingJob.list() == []


def test_a_script_for_another_python_is_warned_of(made, tmp_path, capsys):
    (tmp_path / "code" / "train.py").write_text(BROKEN)
    fake = {"instance_type": "ml.m5.large", "role": ROLE, "sagemaker_session": FakeSageMaker()}
    made(source_dir=str(tmp_path / "code"), image_uri="x/scriptmode:1", **fake).plan()
    assert "train.py cannot be compiled by this Python" in capsys.readouterr().err


SPOT = {"use_spot_instances": True, "max_wait": 10**6}
LIKELY_MISTAKES = [
    ({"source_dir": "s3://b/code"}, "source_dir s3://b/code does not end in .tar.gz: hosts unpack it as a tar archive"),
    (SPOT, "use_spot_instances without checkpoint_s3_uri: a job that is interrupted starts from its beginning"),
    ({"metric_definitions": [{"Name": "a", "Regex": "a=(.*"}]}, "metric 'a': the regular expression 'a=(.*' is wrong"),
    # Java has named groups of its own.
    ({**SPOT, "checkpoint_s3_uri": "s3://b/c", "metric_definitions": [{"Name": "a", "Regex": "(?<a>.*)"}]}, ""),
]


@pytest.mark.parametrize(("arguments", "message"), LIKELY_MISTAKES)
def test_a_likely_mistake_is_told_before_the_job_exists(made, capsys, arguments, message):
    fake = {"instance_type": "ml.m5.large", "role": ROLE, "sagemaker_session": FakeSageMaker(), "image_uri": "img"}
    made(**fake, **arguments).fit(wait=False)
    told = capsys.readouterr().err
    assert message in told if message else told == ""


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
