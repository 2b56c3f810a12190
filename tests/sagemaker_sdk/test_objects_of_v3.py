"""The SageMaker SDK v3's objects, read by their attributes: inputs, tags, metric definitions."""

import json
from types import SimpleNamespace

import pytest
from fakes.estimators import estimator

from scriptmode import FileSystemInput, ShuffleConfig, SpecError, TrainingInput
from scriptmode._core.request.job_inputs import parse_inputs
from scriptmode._core.spec.inputs import Channel


class Unassigned:
    """The value of what was left out."""


#: The attributes of v3's classes, which have all of them; those that were left out are `Unassigned`, in InputData None.
SHAPES = {
    "InputData": "channel_name data_source content_type",
    "Channel": "channel_name data_source content_type compression_type record_wrapper_type input_mode shuffle_config",
    "DataSource": "s3_data_source file_system_data_source dataset_source",
    "S3DataSource": "s3_data_type s3_uri s3_data_distribution_type attribute_names instance_group_names "
    "model_access_config hub_access_config",
    "FileSystemDataSource": "file_system_id file_system_access_mode file_system_type directory_path",
    "DatasetSource": "dataset_arn",
    "ShuffleConfig": "seed",
    "HubAccessConfig": "hub_content_arn",
    "Tag": "key value",
    "MetricDefinition": "name regex",
}


def shape(name, /, **given):
    attributes = SHAPES[name].split()
    assert set(given) <= set(attributes)
    left_out = None if name == "InputData" else Unassigned()
    return SimpleNamespace(**{each: given.get(each, left_out) for each in attributes})


S3 = shape("S3DataSource", s3_data_type="S3Prefix", s3_uri="s3://b/t", s3_data_distribution_type="ShardedByS3Key")
DISK = shape(
    "FileSystemDataSource", file_system_id="fs-1", file_system_access_mode="rw", file_system_type="EFS",
    directory_path="/d",
)  # fmt: skip
SHARDED = TrainingInput("s3://b/t", distribution="ShardedByS3Key")


def input_data(name="train", source="s3://b/t", **given):
    return shape("InputData", channel_name=name, data_source=source, **given)


def channel(source, name="train", **given):
    return shape("Channel", channel_name=name, data_source=shape("DataSource", **source), **given)


ACCEPTED = {
    "a URI": (input_data(), Channel("train", TrainingInput("s3://b/t"))),
    "an S3 source": (input_data(source=S3), Channel("train", SHARDED)),
    "a file system": (input_data("disk", DISK), Channel("disk", FileSystemInput("fs-1", "EFS", "/d", "rw"))),
    "no name": (input_data(None), Channel("training", TrainingInput("s3://b/t"))),
    "a channel of a file system": (
        channel({"file_system_data_source": DISK}),
        Channel("train", FileSystemInput("fs-1", "EFS", "/d", "rw")),
    ),
    "a channel with everything": (
        channel(
            {
                "s3_data_source": shape(
                    "S3DataSource",
                    s3_data_type="AugmentedManifestFile",
                    s3_uri="s3://b/m",
                    attribute_names=["image"],
                    instance_group_names=["workers"],
                    hub_access_config=shape("HubAccessConfig", hub_content_arn="arn:hub"),
                )
            },
            content_type="x/y",
            compression_type="Gzip",
            record_wrapper_type="RecordIO",
            input_mode="Pipe",
            shuffle_config=shape("ShuffleConfig", seed=3),
        ),
        Channel(
            "train",
            TrainingInput(
                "s3://b/m",
                s3_data_type="AugmentedManifestFile",
                attribute_names=["image"],
                instance_groups=["workers"],
                hub_access_config={"HubContentArn": "arn:hub"},
                content_type="x/y",
                compression="Gzip",
                record_wrapping="RecordIO",
                input_mode="Pipe",
                shuffle_config=ShuffleConfig(3),
            ),
        ),
    ),
}


@pytest.mark.parametrize(("given", "parsed"), ACCEPTED.values(), ids=ACCEPTED)
def test_an_input_is_read_by_its_attributes(given, parsed):
    assert parse_inputs(given) == (parsed,)
    assert parse_inputs({parsed.name: given}) == (parsed,)


def test_a_list_of_inputs_has_the_names_of_its_channels():
    expected = (Channel("a", TrainingInput("s3://b/t")), Channel("b", SHARDED))
    assert parse_inputs([input_data("a"), channel({"s3_data_source": S3}, "b")]) == expected
    assert parse_inputs([]) == ()


REFUSED = {
    "no name in a list": ([input_data(None)], "which has no channel_name; give a dict of inputs by channel"),
    "a URI in a list": (["s3://b/t"], r"inputs\[0\] is 's3://b/t', which has no channel_name"),
    "a name twice": ([input_data("a"), input_data("a")], "inputs has the channel 'a' twice; rename one"),
    "two names": ({"b": input_data("a")}, "inputs\\['b'\\] has another name, channel_name='a'; use the same name"),
    "no source": (input_data(source=None), "inputs data_source is None; give an S3 URI, a path"),
    "a dataset": (
        input_data(source=shape("DatasetSource", dataset_arn="arn:d")),
        "inputs has the data source DatasetSource; give S3 or file system data",
    ),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_an_input_that_a_job_cannot_have_is_refused(given, message):
    with pytest.raises(SpecError, match=message):
        parse_inputs(given)


def test_tags_and_metric_definitions_are_read_by_their_attributes(code):
    request = estimator(
        code,
        tags=[shape("Tag", key="team", value="vision")],
        metric_definitions=[shape("MetricDefinition", name="loss", regex="loss=(.*)")],
    ).request([input_data()])
    assert request["Tags"] == [{"Key": "team", "Value": "vision"}]
    assert request["AlgorithmSpecification"]["MetricDefinitions"] == [{"Name": "loss", "Regex": "loss=(.*)"}]
    assert [each["ChannelName"] for each in request["InputDataConfig"]] == ["train"]


def test_a_tag_without_a_value_is_refused(code):
    with pytest.raises(SpecError, match=r"tags\['team'\] is None; give a string"):
        estimator(code, tags=[SimpleNamespace(key="team")])


@pytest.mark.slow
def test_the_classes_of_v3_have_these_attributes(v3, tmp_path):
    program = (
        "import json, sys\nfrom sagemaker.core import shapes\nfrom sagemaker.core.training.configs import InputData\n"
        "from sagemaker.core.utils.utils import Unassigned\n"
        "classes = {name: getattr(shapes, name, InputData) for name in json.load(sys.stdin)}\n"
        "print(json.dumps([{name: list(each.model_fields) for name, each in classes.items()},\n"
        "    type(shapes.DataSource().s3_data_source).__name__, sorted(vars(shapes.Tag(key='a', value='b')))]))"
    )
    fields, left_out, stored = v3.run(tmp_path, "-c", program, text=json.dumps(list(SHAPES)))
    assert {name: set(each) for name, each in fields.items()} == {
        name: set(each.split()) for name, each in SHAPES.items()
    }
    assert (left_out, stored) == ("Unassigned", ["key", "value"])
