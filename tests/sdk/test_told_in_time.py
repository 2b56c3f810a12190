"""What a caller mistook is told before the job is there, or where its result is missed."""

import sys
from pathlib import Path

import pytest

from scriptmode import (
    CredentialsError,
    DataError,
    Estimator,
    JobNotFoundError,
    RequestError,
    SpecError,
    TrainingJob,
)
from scriptmode.cli.cloud_ml_engine.config import parse_settings
from scriptmode.messages import did_you_mean, did_you_mean_path
from scriptmode.platforms.local import LocalPlatform
from scriptmode.results.metrics import Metrics
from scriptmode.spec.unused_settings import LAUNCHER_VARIABLES

ROOT = Path(__file__).parents[2]


@pytest.fixture
def made(tmp_path, monkeypatch, no_settings, code):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("SCRIPTMODE_CONTAINER_LIMITS", raising=False)

    def make(**arguments):
        defaults = {"entry_point": "train.py", "source_dir": code, "instance_type": "local_process"}
        return Estimator(**{**defaults, **arguments})

    return make


def metrics(*pairs):
    return [{"Name": name, "Regex": regex} for name, regex in pairs]


@pytest.mark.parametrize("instance_type", ["local_process", "local"])
def test_a_metric_whose_regex_is_none_is_refused_with_the_place_where_it_breaks(made, tmp_path, instance_type):
    estimator = made(
        metric_definitions=metrics(("loss", "loss=([0-9.]+)"), ("rate", "rate=(x")), instance_type=instance_type
    )
    with pytest.raises(RequestError) as raised:
        estimator.fit()
    text = str(raised.value)
    assert "metric 'rate': the regular expression 'rate=(x' is wrong at character 6, '(x': missing )" in text
    assert text.endswith("correct it; an example is 'loss=([0-9.]+)'")
    assert raised.value.argument == "metric_definitions"
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("regex", ["loss=", "loss", "loss=[0-9.]+", "[0-9]+%", "(?i)LOSS: [0-9.]+"])
def test_a_metric_that_cannot_have_a_value_is_refused(made, regex):
    with pytest.raises(RequestError, match="has no group, and what it matches is not a number; put the number into"):
        made(metric_definitions=metrics(("loss", regex))).fit()


@pytest.mark.parametrize(
    "regex", ["[0-9.]+", r"(?<=loss=)[-+]?\d*\.?\d+(e[-+]\d+)?", "inf|[0-9]+", "x?[0-9]+", ".*", "loss=(.)"]
)
def test_a_metric_whose_whole_match_may_be_a_number_is_accepted(made, regex):
    made(metric_definitions=metrics(("loss", regex))).request()


def test_metrics_that_found_nothing_name_the_metric_and_its_regex(made):
    job = made(metric_definitions=metrics(("loss", "los=([0-9.]+)"))).fit(logs=False)
    found = job.metrics()
    told = "the Regex 'los=([0-9.]+)' of metric 'loss' found no number in the log so far; print such a line, or correct"
    assert told in found.table()
    for look in (job.plot, lambda: job.plot("loss"), lambda: found.values("loss")):
        with pytest.raises((DataError, SpecError)) as raised:
            look()
        assert told in str(raised.value)


def test_a_metric_that_may_have_been_switched_off_says_so():
    found = Metrics([], [("fast", "loss=([0-9.]+)"), ("slow", "(a+)+b")])
    with pytest.raises(
        DataError, match="no number in the log so far, or was switched off because it took too long, as"
    ):
        found.values("slow")
    with pytest.raises(DataError, match="found no number in the log so far; print"):
        found.values("fast")


def test_a_job_without_metrics_says_how_to_define_one(made):
    with pytest.raises(DataError, match=r'define what to find in the log: metric_definitions=\[\{"Name": "loss"'):
        made().fit(logs=False).plot()


def test_limits_of_containers_are_refused_where_hosts_are_processes(made, tmp_path):
    platform = LocalPlatform(data_dir=tmp_path / "data", container_limits={"memory": "2g"})
    with pytest.raises(SpecError, match=r"container_limits is \{'memory': '2g'\}, but hosts of .* 'local_process' are"):
        made(platform=platform).fit()
    assert not (tmp_path / "data").exists()


def test_a_variable_of_limits_that_is_wrong_is_told_before_the_source_is_stored(made, tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_CONTAINER_LIMITS", "memory=lots")
    with pytest.raises(SpecError, match="SCRIPTMODE_CONTAINER_LIMITS: memory is 'lots'; give a number of bytes"):
        made(instance_type="local").fit()
    assert not (tmp_path / "data").exists()


@pytest.mark.slow
def test_an_image_that_processes_have_no_use_for_is_kept_and_said_once(made, capsys):
    job = made(image_uri="team/tf:1").fit()
    said = "image_uri team/tf:1 is not used: hosts of 'local_process' are processes of this machine"
    assert capsys.readouterr().out.count(said) == 1
    assert job.describe()["AlgorithmSpecification"]["TrainingImage"] == "team/tf:1"
    made().fit()
    assert "is not used" not in capsys.readouterr().out


UNUSED = {
    "role": ({"role": "trainer"}, "role trainer is not used: jobs of this machine have the rights of the user who"),
    "volume_size": ({"volume_size": 50}, "volume_size 50 is not used: the hosts have this machine's own disks"),
    "variable": ({"environment": {"SM_HOSTS": "1"}}, "variable SM_HOSTS is not used: the launcher sets its own on"),
    "hyperparameter": (
        {"environment": {"SM_HP_EPOCHS": "1"}, "hyperparameters": {"epochs": 2}},
        "environment variable SM_HP_EPOCHS is not used",
    ),
}


@pytest.mark.parametrize(("arguments", "said"), UNUSED.values(), ids=list(UNUSED))
def test_a_setting_without_an_effect_on_this_machine_is_named_by_the_plan(made, capsys, arguments, said):
    made(**arguments).plan()
    assert said in capsys.readouterr().err
    made(environment={"SM_HP_EPOCHS": "1", "SM_CHANNEL_X": "/x"}).plan()
    assert capsys.readouterr().err == ""


def test_every_variable_of_the_launcher_is_known_as_one(made):
    variables = made().plan().hosts["algo-1"].variables
    # A plan leaves out those that repeat the others.
    repeated = {"SM_TRAINING_ENV", "SAGEMAKER_JOB_NAME", "SAGEMAKER_REGION", "CURRENT_HOST"}
    assert {name for name in variables if name.startswith("SM_")} == LAUNCHER_VARIABLES - repeated


def test_another_interpreters_tensorflow_is_compared_too(made, tmp_path):
    python = tmp_path / "python"
    # The same program under another name, without a TensorFlow.
    python.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT}/entrypoints exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    platform = LocalPlatform(python=python)
    with pytest.raises(SpecError) as raised:
        made(platform=platform, framework_version="2.15").request()
    assert f"framework_version is '2.15', but hosts that are processes run with {python}" in str(raised.value)
    assert "which has no TensorFlow" in str(raised.value)


def test_a_python_that_the_projects_image_does_not_have_is_refused_with_both(made):
    with pytest.raises(SpecError, match=r"py_version is 'py39', but scriptmode:2\.15\.1-\w+, .* has 'py311'; leave"):
        made(instance_type="local", framework_version="2.15", py_version="py39").request()
    assert "scriptmode:2.15.1-" in str(
        made(instance_type="local", framework_version="2.15", py_version="py311").request()
    )


def test_a_job_that_is_not_here_is_not_found_even_without_access_to_the_cloud(made):
    made().fit(logs=False, job_name="fashion-1")
    with pytest.raises(JobNotFoundError) as raised:
        TrainingJob.attach("fashion-2")
    assert isinstance(raised.value.__context__, CredentialsError)
    text = str(raised.value)
    assert "no training job named 'fashion-2' in" in text
    assert "did you mean 'fashion-1'?" in text
    assert "Amazon SageMaker was not asked: no AWS region is set" in text


def test_words_are_suggested_if_they_are_similar_or_few():
    known = [f"job-{number}" for number in range(40)]
    assert did_you_mean("something-else", known) == ""
    assert did_you_mean("job-41", known).startswith("did you mean 'job-4")
    assert did_you_mean("Job-3", known) == "did you mean 'job-3'?"
    assert did_you_mean("x", ["File", "Pipe"]) == "use one of File, Pipe"


@pytest.mark.parametrize(("asked", "meant"), [("trian.py", "train.py"), ("train.yp", "train.py"), ("wrds.py", "")])
def test_a_file_is_suggested_by_its_name_without_the_suffix(tmp_path, asked, meant):
    for name in ("train.py", "syn.py"):
        (tmp_path / name).touch()
    assert did_you_mean_path(tmp_path / asked) == (f"did you mean {meant!r}?" if meant else "")


def test_a_job_is_suggested_only_if_its_name_is_similar(made):
    made().fit(logs=False, job_name="fashion-1")
    with pytest.raises(JobNotFoundError) as raised:
        TrainingJob.attach("words", platform="local")
    assert raised.value.advice == "scriptmode list shows the jobs of this machine"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("trian", "did you mean 'train'?"),
        ("trian/part", "did you mean '{0}/train'?"),
        ("zzz", "correct the path or create it"),
    ],
)
def test_an_inputs_folder_that_was_mistyped_is_told_with_the_one_that_is_there(made, tmp_path, asked, told):
    (tmp_path / "in" / "train").mkdir(parents=True)
    with pytest.raises(DataError) as raised:
        made().fit(f"file://{tmp_path}/in/{asked}")
    assert str(raised.value).endswith(told.format(tmp_path / "in"))
    assert f"{tmp_path}/in/{asked}" in str(raised.value)


@pytest.mark.parametrize(
    ("asked", "told"), [("fiel:///models", "file://"), ("s3:/bucket/models", "s3://"), ("S3a://b/m", "s3://")]
)
def test_a_model_dir_whose_scheme_was_mistyped_is_refused(made, asked, told):
    with pytest.raises(SpecError, match=f"model_dir is '{asked}'; did you mean '{told}'"):
        made(model_dir=asked)
    for fine in ("/opt/ml/model", "gs://bucket/m", "models", True, False):
        made(model_dir=fine)


def test_a_data_directory_that_is_a_file_is_named_by_whatever_needs_it(made, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "file"))
    with pytest.raises(
        DataError, match=r"the data directory .*/file cannot be read: .*; name another one in .*_DATA_DIR"
    ):
        TrainingJob.list()
    with pytest.raises(
        DataError,
        match=r"^the data directory \S*/file cannot be written: File exists; make it writable or name another",
    ):
        made().fit()


def test_an_unknown_home_directory_is_reported_with_the_variables_to_set(monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", "~who-is-that/data")
    with pytest.raises(
        DataError, match="there is no data directory: .*; set HOME or SCRIPTMODE_DATA_DIR to an absolute"
    ):
        TrainingJob.list()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "trainingInput: {scheduling: {}}",
            "scheduling.maxRunningTime is None; write seconds with an s, such as 7200s",
        ),
        ("labels: [vision]", "labels is ['vision']; write keys and values, such as labels: {team: vision}"),
    ],
)
def test_a_config_of_cloud_ml_engine_is_told_its_mistake(tmp_path, text, told):
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(SpecError) as raised:
        parse_settings(tmp_path / "config.yaml", {})
    assert str(raised.value) == f"{tmp_path}/config.yaml: {told}"
