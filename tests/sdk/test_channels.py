"""Inputs that the service would refuse are refused here, with the reason; other clients' inputs are taken."""

from types import SimpleNamespace

import pytest
from fakes.estimators import estimator

from scriptmode import FileSystemInput, ShuffleConfig, SpecError, TrainingInput
from scriptmode.request.fields import render_channel
from scriptmode.request.inputs import parse_source
from scriptmode.spec.inputs import Channel

VPC = {"subnets": ["subnet-1"], "security_group_ids": ["sg-1"]}


@pytest.mark.parametrize(
    ("arguments", "inputs", "message"),
    [
        ({}, TrainingInput("s3://b/x", compression="Gzip"), "channel 'training': compression='Gzip' is for Pipe mode"),
        ({}, TrainingInput("s3://b/x", record_wrapping="RecordIO"), "record_wrapping='RecordIO' is for Pipe mode"),
        (
            {},
            TrainingInput("s3://b/x", s3_data_type="AugmentedManifestFile", attribute_names=["a"]),
            "s3_data_type='AugmentedManifestFile' is for Pipe mode, but its input mode is 'File'",
        ),
        (
            {"input_mode": "Pipe"},
            TrainingInput("s3://b/x", compression="Gzip", input_mode="FastFile"),
            "but its input mode is 'FastFile'",
        ),
        (
            {"input_mode": "Pipe", **VPC},
            {"train": FileSystemInput("fs-01234567", "EFS", "/x")},
            "channel 'train' is a file system, which is mounted, not streamed",
        ),
        ({"model_uri": "s3://m/x"}, {"model": "s3://b/x"}, "channel 'model' is the one of model_uri"),
        (
            {"model_uri": "s3://m/x", "model_channel_name": "start"},
            {"start": "s3://b/x"},
            "channel 'start' is the one of model_uri",
        ),
        ({"keep_alive_period_in_seconds": 60, "use_spot_instances": True, "max_run": 1, "max_wait": 2}, None, "spot"),
        ({"enable_network_isolation": "yes"}, None, "enable_network_isolation is 'yes'; give True or False"),
    ],
)
def test_a_combination_that_the_service_refuses_is_refused_with_the_reason(code, arguments, inputs, message):
    with pytest.raises(SpecError, match=message):
        estimator(code, **arguments).request(inputs)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TrainingInput("s3://b/x", s3_data_type="AugmentedManifestFile"), "needs attribute_names"),
        (lambda: TrainingInput("s3://b/x", attribute_names=["a"]), "but s3_data_type is 'S3Prefix'"),
        (lambda: TrainingInput("s3://b/x", target_attribute_name="a"), "target_attribute_name is for AutoML jobs"),
        (lambda: FileSystemInput("fs-01234567", "EFS", "data"), "give an absolute path on the file system: '/data'"),
        (lambda: ShuffleConfig("7"), "seed is '7'; give a whole number"),
    ],
)
def test_an_input_that_cannot_be_is_refused_when_it_is_made(make, message):
    with pytest.raises(SpecError, match=message):
        make()


def test_a_model_to_start_from_comes_in_a_channel_of_its_own_before_the_code(code):
    made = estimator(code, model_uri="s3://m/model.tar.gz", enable_network_isolation=True, input_mode="Pipe")
    channels = made.request({"train": "s3://b/x"})["InputDataConfig"]
    assert [channel["ChannelName"] for channel in channels] == ["train", "model", "code"]
    assert channels[1]["ContentType"] == "application/x-sagemaker-model"
    assert [channel.get("InputMode") for channel in channels] == [None, "File", "File"]


@pytest.mark.parametrize(
    "given",
    [
        TrainingInput("s3://b/x"),
        TrainingInput("s3://b/x", distribution="ShardedByS3Key", input_mode="FastFile", content_type="text/csv"),
        TrainingInput(
            "s3://b/m", s3_data_type="AugmentedManifestFile", attribute_names=["a", "b"], shuffle_config=ShuffleConfig(3),
            input_mode="Pipe", record_wrapping="RecordIO", compression="Gzip", instance_groups=["g"],
            hub_access_config={"HubContentArn": "arn"}, model_access_config={"AcceptEula": True},
        ),
        FileSystemInput("fs-01234567", "FSxLustre", "/x", "rw", "text/csv"),
    ],
    ids=["plain", "sharded", "everything", "file system"],
)  # fmt: skip
def test_an_input_survives_the_request_and_back(given):
    assert parse_source("x", render_channel(Channel("x", given))) == given


def test_the_sagemaker_sdks_own_inputs_are_taken(code):
    theirs = SimpleNamespace(
        config={
            "DataSource": {"S3DataSource": {"S3DataType": "ManifestFile", "S3Uri": "s3://b/m"}},
            "InputMode": "Pipe",
        }
    )
    (channel,) = estimator(code).request({"train": theirs})["InputDataConfig"]
    assert channel["DataSource"]["S3DataSource"]["S3DataType"] == "ManifestFile"
    assert channel["InputMode"] == "Pipe"


def test_a_data_source_without_a_class_is_named(code):
    theirs = SimpleNamespace(config={"DataSource": {"DatasetSource": {"DatasetArn": "arn"}}})
    with pytest.raises(SpecError, match=r"inputs\['train'\] has the data source DatasetSource"):
        estimator(code).request({"train": theirs})
