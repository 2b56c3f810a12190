"""What would fail on the hosts, and a mistake of the caller, is refused, or warned of, before a job starts."""

import re
import sys

import pytest
from fakes.estimators import ROLE

from scriptmode import (
    ContinuousParameter,
    DataError,
    Estimator,
    ParameterServer,
    RequestError,
    SourceError,
    SpecError,
    TrainingInput,
    TrainingJob,
    Tuner,
)
from scriptmode._results.metrics import Metrics
from scriptmode.testing import EngineSuite, FakeSageMaker
from scriptmode_local import LocalPlatform
from scriptmode_runtime import contract
from scriptmode_runtime._values.settings import VARIABLES


@pytest.fixture
def made(data_dir, monkeypatch, no_settings, code):
    monkeypatch.delenv("SCRIPTMODE_CONTAINER_LIMITS", raising=False)

    def make(**arguments):
        defaults = {"entry_point": "train.py", "source_dir": code, "instance_type": "local_process"}
        return Estimator(**{**defaults, **arguments})

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
    # The service reads expressions as Java's.
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


def loss(regex):
    return {"metric_definitions": [{"Name": "loss", "Regex": regex}]}


@pytest.mark.parametrize("regex", ["loss=", "loss", "loss=[0-9.]+", "[0-9]+%", "(?i)LOSS: [0-9.]+"])
def test_a_metric_that_cannot_have_a_value_is_refused(made, regex):
    with pytest.raises(RequestError, match="no group, and what it matches is not a number; put the number into"):
        made(**loss(regex)).fit()


@pytest.mark.parametrize("regex", [r"(?<=loss=)[-+]?\d*\.?\d+(e[-+]\d+)?", "inf|[0-9]+", "x?[0-9]+", "loss=(.)"])
def test_a_metric_that_can_have_a_value_is_sent(made, regex):
    assert made(**loss(regex)).request()["AlgorithmSpecification"]["MetricDefinitions"][0]["Regex"] == regex


def test_metrics_that_found_nothing_name_the_metric_and_its_regex(made):
    job = made(**loss("los=([0-9.]+)")).fit(logs=False)
    found = job.metrics()
    message = "the Regex 'los=([0-9.]+)' of metric 'loss' found no number in the log so far; print such a line"
    assert message in found.table()
    for look in (job.plot, lambda: job.plot("loss"), lambda: found.values("loss")):
        with pytest.raises((DataError, SpecError)) as raised:
            look()
        assert message in str(raised.value)


def test_without_any_metric_the_error_says_how_to_define_one():
    with pytest.raises(DataError, match=r'define what to find in the log: metric_definitions=\[\{"Name": "loss"'):
        Metrics([], []).plot()


def test_limits_of_containers_are_refused_where_hosts_are_processes(made, tmp_path):
    platform = LocalPlatform(data_dir=tmp_path / "data", container_limits={"memory": "2g"})
    with pytest.raises(SpecError, match=r"container_limits is \{'memory': '2g'\}, but hosts of .* 'local_process' are"):
        made(platform=platform).fit()
    assert not (tmp_path / "data").exists()


UNUSED = {
    "image": ({"image_uri": "team/tf:1"}, "image_uri team/tf:1 is not used: the hosts are processes of this machine"),
    "role": ({"role": "trainer"}, "role trainer is not used: jobs of this machine have the rights of the user who"),
    "a role's form": ({"role": "arn:aws:iam::<account>:role/x"}, "role x is not used: jobs of this machine have the"),
    "key": ({"output_kms_key": "bad key!"}, "output_kms_key is not used: it is for Amazon SageMaker's own hosts"),
    "VPC": ({"subnets": ["?"], "security_group_ids": ["?"]}, "subnets is not used: it is for Amazon SageMaker's own"),
    "plain field": ({"enable_infra_check": True}, "enable_infra_check is not used: it is for Amazon SageMaker's own"),
    "volume_size": ({"volume_size": 50}, "volume_size 50 is not used: the hosts have this machine's own disks"),
    "variable": (
        {"environment": {"SM_MODEL_DIR": "/m"}},
        "variable SM_MODEL_DIR may have no effect: the launcher sets",
    ),
    "a typo": (
        {"environment": {"SCRIPTMODE_HANG_SECOND": "9"}},
        "no setting of the launcher; did you mean 'SCRIPTMODE_HANG_SECONDS'?",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), UNUSED.values(), ids=list(UNUSED))
def test_a_setting_without_an_effect_on_this_machine_is_named_by_the_plan(made, capsys, arguments, message):
    made(**arguments).plan()
    assert message in capsys.readouterr().err
    made(environment={"SCRIPTMODE_X": ""}).plan()
    assert capsys.readouterr().err == ""


def test_a_setting_in_the_environment_of_hosts_without_an_image_is_checked_before_the_start(made, monkeypatch, capsys):
    monkeypatch.setenv("SCRIPTMODE_HANG_SECOND", "10")
    made().plan()
    assert "no setting of the launcher; did you mean 'SCRIPTMODE_HANG_SECONDS'?" in capsys.readouterr().err
    monkeypatch.setenv("SCRIPTMODE_HANG_SECONDS", "ten")
    with pytest.raises(SpecError, match=r"os.environ\['SCRIPTMODE_HANG_SECONDS'\] is 'ten'; give a number of seconds"):
        made().fit()
    with pytest.raises(SpecError, match=r"environment\['SCRIPTMODE_SOURCE_LIMIT_GB'\] is 'big'; give a number of GB"):
        made(environment={"SCRIPTMODE_HANG_SECONDS": "9", "SCRIPTMODE_SOURCE_LIMIT_GB": "big"}).request()


def test_an_instance_type_that_is_similar_to_one_of_amazons_is_a_warning_before_anything_is_sent(made):
    with pytest.warns(UserWarning, match=r"'ml.p3.2xlarg' is not one .* botocore knows; did you mean 'ml.p3.2xlarge'"):
        made(instance_type="ml.p3.2xlarg").platform  # noqa: B018


def test_every_variable_of_the_launcher_is_known_as_one():
    ours = {
        name for key, name in vars(contract).items() if key.endswith("_VARIABLE") and name.startswith("SCRIPTMODE_")
    }
    assert ours - {contract.CPUS_VARIABLE, contract.LAUNCHER_VARIABLE} == set(VARIABLES)


def test_a_platform_and_a_suite_for_an_engine_name_an_argument_of_another_kind(tmp_path):
    for argument in ("data_dir", "python"):
        with pytest.raises(SpecError, match=f"^{argument} is 3; give a path$"):
            LocalPlatform(**{argument: 3})
    with pytest.raises(SpecError, match=r"^instance_type is ''; give a string that is not empty$"):
        EngineSuite().test_a_script_that_is_killed_fails_with_its_signal(tmp_path)


@pytest.mark.parametrize("below", ["", "/below/it"], ids=["it", "below it"])
def test_a_data_directory_that_is_a_file_is_named_by_whatever_needs_it(made, below, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", f"{tmp_path}/file{below}")
    for call in (TrainingJob.list, lambda: made().fit(), lambda: TrainingJob.attach("a-job")):
        with pytest.raises(DataError, match=f"^the data directory .*/file{below} cannot be .*one in the environment v"):
            call()


def test_an_unknown_home_directory_is_reported_with_the_variables_to_set(monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", "~who-is-that/data")
    with pytest.raises(DataError, match="there is no data directory: .*; set HOME or SCRIPTMODE_DATA_DIR to an abs"):
        TrainingJob.list()
