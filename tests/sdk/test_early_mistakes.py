"""A mistake of the caller is an error before the job exists, or where its result is missing."""

import pytest

from scriptmode import DataError, Estimator, RequestError, SpecError, TrainingJob
from scriptmode._core.handle.early_checks import LAUNCHER_VARIABLES
from scriptmode._results.metrics import Metrics
from scriptmode.testing import EngineSuite
from scriptmode_local import LocalPlatform
from scriptmode_runtime import contract
from scriptmode_runtime._values.settings import VARIABLES


@pytest.fixture
def made(tmp_path, monkeypatch, no_settings, code):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("SCRIPTMODE_CONTAINER_LIMITS", raising=False)

    def make(**arguments):
        defaults = {"entry_point": "train.py", "source_dir": code, "instance_type": "local_process"}
        return Estimator(**{**defaults, **arguments})

    return make


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


def test_a_metric_that_may_have_been_switched_off_or_was_never_defined_says_so():
    found = Metrics([], [("fast", "loss=([0-9.]+)"), ("slow", "(a+)+b")])
    with pytest.raises(DataError, match="no number in the log so far, or was switched off because it took too long"):
        found.values("slow")
    with pytest.raises(DataError, match="found no number in the log so far; print"):
        found.values("fast")
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
    "variable": ({"environment": {"SM_HOSTS": "1"}}, "variable SM_HOSTS is not used: the launcher sets its own on"),
    "a typo": (
        {"environment": {"SCRIPTMODE_HANG_SECOND": "9"}},
        "no setting of the launcher; did you mean 'SCRIPTMODE_HANG_SECONDS'?",
    ),
    "hyperparameter": (
        {"environment": {"SM_HP_EPOCHS": "1"}, "hyperparameters": {"epochs": 2}},
        "environment variable SM_HP_EPOCHS is not used",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), UNUSED.values(), ids=list(UNUSED))
def test_a_setting_without_an_effect_on_this_machine_is_named_by_the_plan(made, capsys, arguments, message):
    made(**arguments).plan()
    assert message in capsys.readouterr().err
    made(environment={"SM_HP_EPOCHS": "1", "SM_CHANNEL_X": "/x", "SCRIPTMODE_X": ""}).plan()
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


def test_every_variable_of_the_launcher_is_known_as_one(made):
    variables = made().plan().hosts["algo-1"].launch.main.env
    others = {"SAGEMAKER_JOB_NAME", "SAGEMAKER_REGION", "CURRENT_HOST"}
    ours = {
        name for key, name in vars(contract).items() if key.endswith("_VARIABLE") and name.startswith("SCRIPTMODE_")
    }
    assert ours - {contract.CPUS_VARIABLE, contract.LAUNCHER_VARIABLE} == set(VARIABLES)
    assert {name for name in variables if name.startswith("SM_")} == LAUNCHER_VARIABLES - others


def test_a_platform_and_a_suite_for_an_engine_name_an_argument_of_another_kind(tmp_path):
    for argument in ("data_dir", "python"):
        with pytest.raises(SpecError, match=f"^{argument} is 3; give a path$"):
            LocalPlatform(**{argument: 3})
    with pytest.raises(SpecError, match=r"^instance_type is ''; give a string that is not empty$"):
        EngineSuite().test_a_script_that_is_killed_fails_with_its_signal(tmp_path)


@pytest.mark.parametrize(
    ("below", "what"), [("", "which is a file"), ("/below/it", "but '.*/file' is a file")], ids=["it", "below it"]
)
def test_a_data_directory_that_is_a_file_is_named_by_whatever_needs_it(made, below, what, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", f"{tmp_path}/file{below}")
    for call in (TrainingJob.list, lambda: made().fit(), lambda: TrainingJob.attach("a-job")):
        with pytest.raises(DataError, match=rf"^SCRIPTMODE_DATA_DIR is '.*/file{below}', {what}; set the variable to"):
            call()


def test_an_unknown_home_directory_is_reported_with_the_variables_to_set(monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", "~who-is-that/data")
    with pytest.raises(DataError, match="there is no data directory: .*; set HOME or SCRIPTMODE_DATA_DIR to an abs"):
        TrainingJob.list()
