"""An entry of InputDataConfig is parsed with the service's defaults filled in."""

import pytest

from scriptmode.data.channel_source import ChannelSource, source_of
from scriptmode.request.parse import parse_request


def request(**algorithm):
    return {"AlgorithmSpecification": {"TrainingImage": "i", **algorithm}}


def parse(request, entry):
    job = parse_request({**request, "InputDataConfig": [entry]})
    return source_of(job, job.channels[0])


def entry(source=(), **fields):
    s3 = {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x", **dict(source)}
    return {"ChannelName": "train", "DataSource": {"S3DataSource": s3}, **fields}


def test_the_smallest_entry_is_a_replicated_prefix_in_file_mode():
    assert parse(request(), entry()) == ChannelSource("train", "File", "S3Prefix", "s3://b/x")


def test_every_field_of_an_entry_is_parsed():
    source = {
        "S3DataType": "AugmentedManifestFile",
        "S3DataDistributionType": "ShardedByS3Key",
        "AttributeNames": ["image-ref", "label"],
    }
    fields = {
        "InputMode": "Pipe",
        "CompressionType": "Gzip",
        "RecordWrapperType": "RecordIO",
        "ShuffleConfig": {"Seed": 0},
        "ContentType": "text/csv",
    }
    assert parse(request(TrainingInputMode="File"), entry(source, **fields)) == ChannelSource(
        name="train",
        mode="Pipe",
        data_type="AugmentedManifestFile",
        uri="s3://b/x",
        is_sharded=True,
        is_gzipped=True,
        is_wrapped=True,
        attribute_names=("image-ref", "label"),
        shuffle_seed=0,
        content_type="text/csv",
    )


@pytest.mark.parametrize(
    ("own", "of_the_job", "mode"),
    [
        pytest.param({}, {"TrainingInputMode": "Pipe"}, "Pipe", id="the job's"),
        pytest.param({"InputMode": "FastFile"}, {"TrainingInputMode": "Pipe"}, "FastFile", id="its own"),
        pytest.param({}, {}, "File", id="neither"),
    ],
)
def test_a_channel_has_its_own_mode_else_the_jobs(own, of_the_job, mode):
    assert parse(request(**of_the_job), entry(**own)).mode == mode


def test_an_explicit_none_is_the_default():
    fields = {"CompressionType": "None", "RecordWrapperType": "None"}
    assert parse(request(), entry({"S3DataDistributionType": "FullyReplicated"}, **fields)) == parse(request(), entry())
