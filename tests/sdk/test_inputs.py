"""Inputs of a job: what they may be, what of them the service would refuse, and those of other clients."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from fakes.estimators import estimator

from scriptmode import FileSystemInput, RequestError, ShuffleConfig, SpecError, TrainingInput
from scriptmode._core.request.job_inputs import parse_inputs
from scriptmode.testing import FakeSageMaker


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        pytest.param("/data/train", "inputs '/data/train': there is no file or directory", id="a path"),
        pytest.param(
            "b/data",
            f"the path, which begins at the current directory '{Path.cwd()}', or create it; data in S3 begin with s3://",
            id="a bucket",
        ),
        pytest.param("sdks", f"there is no file or directory '{Path.cwd()}/sdks'; did you mean 'sdk'?", id="a typo"),
        pytest.param({"x": "a\0b"}, r"inputs['x'] is 'a\x00b', which has a NUL character", id="a path with NUL"),
        pytest.param(Path("a\0b"), "which has a NUL character", id="a path object with NUL"),
        pytest.param("file:/tmp/x", "inputs is 'file:/tmp/x'; give an s3:// URI or a path", id="a URI of one slash"),
        pytest.param("", "inputs is ''; give an s3:// URI or a path", id="nothing"),
        pytest.param(
            "file://data/x",
            f"there is no '{Path.cwd()}/data/x'; give an absolute path: file:///directory",
            id="a relative file URI",
        ),
        pytest.param(
            {"train": "gs://b/x"}, "inputs['train'] is 'gs://b/x', with the scheme 'gs'", id="a foreign scheme"
        ),
        pytest.param("s3://", "names no bucket", id="no bucket"),
        pytest.param({"train": 3}, "inputs['train'] is 3; give a path, a URI such as", id="a number"),
        pytest.param(5, "or a dict of them by channel", id="a number without a channel"),
        pytest.param({"tr ain": "s3://b"}, "channel name 'tr ain'", id="a name with a space"),
        pytest.param(["s3://b"], "inputs is ['s3://b']; give a path", id="a list"),
    ],
)
def test_a_wrong_input_is_named(inputs, message):
    with pytest.raises(SpecError) as caught:
        parse_inputs(inputs)
    assert message in str(caught.value)
    assert caught.value.argument == "inputs"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"attribute_names": "source-ref"}, "lists of names"),
        ({"target_attribute_name": "a"}, "target_attribute_name is for AutoML jobs"),
        ({"shuffle_config": 5}, "give ShuffleConfig(seed)"),
    ],
)
def test_a_wrong_argument_of_an_input_is_named(arguments, message):
    with pytest.raises(SpecError) as caught:
        TrainingInput("s3://b/x", **arguments)
    assert message in str(caught.value)


def test_a_data_source_without_a_class_is_named():
    theirs = SimpleNamespace(config={"DataSource": {"DatasetSource": {"DatasetArn": "arn"}}})
    with pytest.raises(SpecError, match=r"inputs\['train'\] has the data source DatasetSource"):
        parse_inputs({"train": theirs})


def test_wrong_arguments_of_other_values_of_inputs_are_named():
    with pytest.raises(SpecError, match="give an absolute path on the file system: '/data'"):
        FileSystemInput("fs-01234567", "EFS", "data")
    with pytest.raises(SpecError, match="seed is 'x'; give a whole number"):
        ShuffleConfig("x")


@pytest.mark.parametrize("wrapped", [lambda path: path, TrainingInput], ids=["alone", "in a TrainingInput"])
def test_a_path_object_is_a_place_of_this_machine(wrapped, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (whole,) = parse_inputs(wrapped(tmp_path / "with space"))
    (relative,) = parse_inputs({"train": wrapped(Path("points"))})
    assert whole.source.s3_data == f"file://{tmp_path}/with space"
    assert relative.source.s3_data == f"file://{tmp_path}/points"


def test_text_without_a_scheme_is_a_path_of_this_machine_as_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "data").mkdir()
    for text in ("data", "./data", "data/", "~/data", f"{tmp_path}/data"):
        (alone,), (wrapped,) = parse_inputs(text), parse_inputs({"train": TrainingInput(text)})
        assert alone.source.s3_data == wrapped.source.s3_data == f"file://{tmp_path}/data"


@pytest.mark.parametrize("text", ["", "x:y", "s3:x"])
def test_a_wrong_text_is_refused_in_a_directory_that_is_gone(tmp_path, monkeypatch, text):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(SpecError, match="give "):
        TrainingInput(text)


def test_the_channel_of_a_model_is_not_one_of_the_inputs(code):
    made = estimator(code, model_uri="s3://m/x", model_channel_name="start")
    with pytest.raises(SpecError, match="channel 'start' is the one of model_uri"):
        made.request({"start": "s3://b/x"})


CLOUD = {"platform": None, "sagemaker_session": FakeSageMaker(), "instance_type": "ml.m5.large"}


@pytest.mark.parametrize(
    ("arguments", "inputs", "message"),
    [
        ({}, TrainingInput("s3://b/x", distribution="Sharded"), "'Sharded'; did you mean 'ShardedByS3Key'?"),
        ({"input_mode": "Pip"}, None, "TrainingInputMode is 'Pip'; did you mean 'Pipe'?"),
        ({"subnets": ["subnet-1"]}, None, "VpcConfig lacks 'SecurityGroupIds'"),
        ({"checkpoint_local_path": "/x"}, None, "CheckpointConfig lacks 'S3Uri'"),
    ],
)
def test_what_the_services_model_refuses_is_refused_before_anything_is_stored(code, arguments, inputs, message):
    with pytest.raises(RequestError) as caught:
        estimator(code, **CLOUD, **arguments).request(inputs)
    assert message in str(caught.value)


@pytest.mark.parametrize("uri", ["file://./data/train", "file://data/train", "data/train", "file://../here/data/train"])
def test_a_relative_file_uri_begins_at_the_current_directory(tmp_path, monkeypatch, uri):
    (tmp_path / "here" / "data" / "train").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    (channel,) = parse_inputs(uri)
    assert channel.source.s3_data == f"file://{tmp_path}/here/data/train"


@pytest.mark.parametrize(
    "source",
    [
        TrainingInput("s3://b/x"),
        TrainingInput(
            "s3://b/x", "ShardedByS3Key", "Gzip", "text/csv", "RecordIO", input_mode="Pipe",
            shuffle_config=ShuffleConfig(3),
        ),
        TrainingInput("s3://b/x", s3_data_type="AugmentedManifestFile", attribute_names=["a"], input_mode="Pipe"),
        FileSystemInput("fs-0123456789abcdef0", "EFS", "/x", "rw", "text/csv"),
    ],
    ids=lambda source: str(source)[:60],
)  # fmt: skip
def test_the_config_of_an_input_is_what_the_request_has_of_it(code, source):
    network = {"subnets": ["subnet-1"], "security_group_ids": ["sg-1"]}
    request = estimator(
        code, instance_type="ml.m5.large", platform=None, sagemaker_session=FakeSageMaker(), **network
    ).request({"train": source})
    (channel,) = request["InputDataConfig"]
    assert {"ChannelName": "train", **source.config} == channel
