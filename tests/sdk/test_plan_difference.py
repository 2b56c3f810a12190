"""How a plan differs from a job before it."""

import json
import shutil
from pathlib import Path

import pytest
from fakes.estimators import ROLE

from scriptmode import Estimator, JobNotFoundError, ParameterServer, SpecError, TensorFlow, TrainingInput, TrainingJob
from scriptmode.planning.difference import changed_fields
from scriptmode.testing import FakeSageMaker, ServiceError


@pytest.fixture
def fake():
    return FakeSageMaker()


@pytest.fixture
def again(code, fake):
    def make(**arguments):
        return TensorFlow(
            entry_point="train.py",
            source_dir=code,
            **{"instance_count": 2, "hyperparameters": {"epochs": 3, "password": "hunter2hunter2"}, **arguments},
            image_uri="registry/team/tf:2.15",
            role=ROLE,
            instance_type="ml.c5.xlarge",
            distribution=ParameterServer(),
            tags={"team": "a"},
            sagemaker_session=fake,
        )

    return make


@pytest.fixture
def before(again):
    return again().fit({"train": "s3://bucket/train"}, wait=False)


def test_equal_calls_have_no_difference(again, before):
    plan = again().plan({"train": "s3://bucket/train"}, against=before)
    assert plan.difference.is_none
    assert plan.difference.fields == {}
    assert (plan.difference.added, plan.difference.removed, plan.difference.changed) == ((), (), ())
    assert f"Difference to {before.name}\n  none, except the job's name" in str(plan)


def test_every_changed_field_is_shown_before_and_after(again, before, code):
    Path(code, "extra.py").write_text("x = 1")
    changed = again(instance_count=3, hyperparameters={"epochs": 5, "rate": 0.1}, volume_size=40)
    plan = changed.plan({"train": TrainingInput("s3://bucket/train", input_mode="Pipe")}, against=before.name)
    fields = {path: (change.before, change.after) for path, change in plan.difference.fields.items()}
    assert fields == {
        "HyperParameters.epochs": ("3", "5"),
        "HyperParameters.rate": (None, "0.1"),
        "HyperParameters.password": ("******", None),
        "InputDataConfig.train.InputMode": (None, "Pipe"),
        "ResourceConfig.InstanceCount": (2, 3),
        "ResourceConfig.VolumeSizeInGB": (30, 40),
    }
    assert plan.difference.added == ("extra.py",)
    text = str(plan)
    assert '  HyperParameters.epochs: "3" -> "5"' in text
    assert '  HyperParameters.rate: "0.1", not set before' in text
    assert '  HyperParameters.password: not set, "******" before' in text
    assert "  source: added extra.py" in text
    assert plan.to_dict()["difference"]["fields"]["HyperParameters.rate"] == {"before": None, "after": "0.1"}
    assert json.dumps(plan.to_dict())


def test_files_that_were_changed_and_removed_are_named(again, code):
    Path(code, "old.py").write_text("")
    job = again().fit(wait=False)
    Path(code, "old.py").unlink()
    Path(code, "train.py").write_text("print(2)")
    difference = again().plan(against=job).difference
    assert (difference.added, difference.removed, difference.changed) == ((), ("old.py",), ("train.py",))
    assert difference.fields == {}


def test_a_secret_that_differs_is_named_and_not_shown(again, before):
    plan = again(hyperparameters={"epochs": 3, "password": "correct horse"}).plan(
        {"train": "s3://bucket/train"}, against=before
    )
    assert list(plan.difference.fields) == ["HyperParameters.password"]
    for text in (str(plan), json.dumps(plan.to_dict())):
        assert "hunter2" not in text
        assert "correct horse" not in text


def test_an_archive_that_is_gone_is_said_to_be(again, before, fake):
    uri = json.loads(before.describe()["HyperParameters"]["sagemaker_submit_directory"])
    fake.fault("get_object", ServiceError("NoSuchKey", "The specified key does not exist.", 404))
    difference = again().plan({"train": "s3://bucket/train"}, against=before).difference
    assert difference.changed is None
    assert uri in difference.note


def test_looking_at_a_job_stores_nothing(again, before, fake):
    fake.calls.clear()
    again().plan(against=before.name)
    called = {call.operation for call in fake.calls}
    assert "describe_training_job" in called
    assert not [name for name in called if name.startswith(("put", "upload", "create", "delete"))]


def test_an_unknown_job_is_an_error(again):
    with pytest.raises(JobNotFoundError, match="never"):
        again().plan(against="never")


@pytest.mark.parametrize("against", ["", 7])
def test_a_value_that_is_not_a_job_is_an_error(again, against):
    with pytest.raises(SpecError, match=f"against is {against!r}"):
        again().plan(against=against)


def test_a_job_of_this_machine_is_found_for_a_plan_of_another_platform(again, code, tmp_path, monkeypatch, jobs):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(jobs.data_dir))
    shutil.copy(Path(code, "train.py"), tmp_path / "train.py")
    local = Estimator(entry_point="train.py", source_dir=code, instance_type="local_process", hyperparameters={"a": 1})
    job = local.fit(wait=False)
    assert isinstance(job, TrainingJob)
    plan = again().plan(against=job.name)
    assert plan.difference.changed == ()
    assert plan.difference.fields["ResourceConfig.InstanceType"].before == "local_process"


def test_a_job_of_this_machine_is_found_without_credentials(code, tmp_path, monkeypatch, no_settings):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    local = Estimator(entry_point="train.py", source_dir=code, instance_type="local_process")
    job = local.fit(job_name="one", logs=False)
    made = Estimator(
        "image:2.15", ROLE, 1, "ml.m5.large", output_path="s3://out", code_location="s3://out/code",
        entry_point="train.py", source_dir=code,
    )  # fmt: skip
    assert made.plan(against="one").difference.job == job.name
    with pytest.raises(JobNotFoundError, match="no training job named 'two' .* was not asked: .*credentials"):
        made.plan(against="two")


def test_members_of_lists_are_identified_by_their_names():
    channels = [{"ChannelName": name, "DataSource": {"S3DataSource": {"S3Uri": f"s3://{name}"}}} for name in "ab"]
    old, new = {"InputDataConfig": channels}, {"InputDataConfig": channels[::-1]}
    assert changed_fields(old, new) == {}
    [path] = changed_fields(old, {"InputDataConfig": channels[:1]})
    assert path == "InputDataConfig.b.DataSource.S3DataSource.S3Uri"


def test_what_the_service_describes_unasked_is_not_a_difference():
    described = {
        "EnableNetworkIsolation": False,
        "OutputDataConfig": {"S3OutputPath": "s3://b", "CompressionType": "GZIP"},
    }
    assert changed_fields(described, {"OutputDataConfig": {"S3OutputPath": "s3://b"}}) == {}
