"""What a request and a description answer from several of their fields together."""

import pytest

from scriptmode.request.parse import parse_description, parse_request
from scriptmode.spec.hosts import HostKind

GROUPS = [
    {"InstanceGroupName": "large", "InstanceType": "ml.p3.2xlarge", "InstanceCount": 1},
    {"InstanceGroupName": "small", "InstanceType": "ml.m5.large", "InstanceCount": 2},
]


def data(name, mode=None, **source):
    stored = {"S3DataType": "S3Prefix", "S3Uri": f"s3://b/{name}", **source}
    return {
        "ChannelName": name,
        "DataSource": {"S3DataSource": stored},
        **({"InputMode": mode} if mode else {}),
    }


def job(**fields):
    return parse_request({"TrainingJobName": "job-1", **fields})


def on(*types):
    groups = [{"InstanceGroupName": each, "InstanceType": each, "InstanceCount": 1} for each in types]
    return job(ResourceConfig={"InstanceGroups": groups}).resources


def test_hosts_are_numbered_through_all_groups():
    resources = job(ResourceConfig={"InstanceGroups": GROUPS}).resources
    assert resources.hosts == ("algo-1", "algo-2", "algo-3")
    assert [(group.name, group.hosts) for group in resources.host_groups] == [
        ("large", ("algo-1",)),
        ("small", ("algo-2", "algo-3")),
    ]


def test_hosts_of_one_type_are_one_group_with_the_services_name():
    resources = job(ResourceConfig={"InstanceType": "local_process", "InstanceCount": 2}).resources
    (group,) = resources.host_groups
    assert (group.name, group.instance_type, group.hosts) == (
        "homogeneousCluster",
        "local_process",
        ("algo-1", "algo-2"),
    )


def test_a_job_whose_hosts_are_not_described_has_none():
    assert job().resources.hosts == ()
    assert job().resources.host_kind is HostKind.CLOUD


@pytest.mark.parametrize(
    ("types", "kind"),
    [
        (("local_process",), HostKind.PROCESS),
        (("local", "local_gpu"), HostKind.CONTAINER),
        (("local_process", "local"), HostKind.CONTAINER),
        (("ml.m5.large",), HostKind.CLOUD),
        (("local_process", "ml.m5.large"), HostKind.CLOUD),
    ],
)
def test_instance_types_decide_what_the_hosts_are(types, kind):
    assert on(*types).host_kind is kind


def test_a_channel_has_its_own_mode_or_the_jobs_and_the_hosts_of_its_groups():
    files = {
        "ChannelName": "files",
        "DataSource": {"FileSystemDataSource": {"FileSystemId": "fs-1", "DirectoryPath": "/x"}},
    }
    request = job(
        AlgorithmSpecification={"TrainingInputMode": "Pipe"},
        ResourceConfig={"InstanceGroups": GROUPS},
        InputDataConfig=[data("a"), data("b", "File", InstanceGroupNames=["small"]), data("c", "FastFile"), files],
    )
    assert [request.input_mode(channel) for channel in request.channels[:3]] == ["Pipe", "File", "FastFile"]
    everywhere = ("algo-1", "algo-2", "algo-3")
    assert [request.channel_hosts(channel) for channel in request.channels] == [
        everywhere,
        ("algo-2", "algo-3"),
        everywhere,
        everywhere,
    ]
    assert request.streamed_uris == ("s3://b/a", "s3://b/c")


def test_a_channel_is_whole_unless_it_is_sharded():
    request = job(InputDataConfig=[data("a"), data("b", S3DataDistributionType="ShardedByS3Key")])
    assert [channel.source.is_sharded for channel in request.channels] == [False, True]


@pytest.mark.parametrize(
    ("parameters", "channels", "uri"),
    [
        ({}, [], None),
        ({"sagemaker_submit_directory": '"/opt/ml/code"'}, [], None),
        ({"sagemaker_submit_directory": '"s3://b/s.tar.gz"'}, [data("code")], "s3://b/s.tar.gz"),
        ({"sagemaker_submit_directory": "s3://b/s.tar.gz"}, [], "s3://b/s.tar.gz"),
        ({"sagemaker_submit_directory": '"/opt/ml/input/data/code/s.tar.gz"'}, [data("code")], "s3://b/code"),
    ],
    ids=["an algorithm", "in the image", "a channel of the same name", "not encoded", "under isolation"],
)
def test_the_source_is_where_the_hosts_get_it(parameters, channels, uri):
    assert job(HyperParameters=parameters, InputDataConfig=channels).source_uri == uri


def test_a_job_without_a_limit_has_the_services():
    assert job().limits.max_run == 24 * 60 * 60
    assert job(StoppingCondition={"MaxRuntimeInSeconds": 5}).limits.max_run == 5


def described(**fields):
    return parse_description({"TrainingJobName": "job-1", "TrainingJobStatus": "Completed", **fields})


def test_the_billable_seconds_of_a_description_are_those_of_one_host():
    found = described(ResourceConfig={"InstanceGroups": GROUPS}, BillableTimeInSeconds=20, TrainingTimeInSeconds=80)
    assert (found.billable_seconds, found.spot_savings) == (60, None)
    assert described().billable_seconds is None


@pytest.mark.parametrize(("seconds", "savings"), [(80, 0.75), (0, None), (None, None)])
def test_a_spot_job_saves_the_part_that_is_not_billed(seconds, savings):
    times = {} if seconds is None else {"TrainingTimeInSeconds": seconds}
    assert described(EnableManagedSpotTraining=True, BillableTimeInSeconds=20, **times).spot_savings == savings


def test_the_message_is_the_newest_one():
    transitions = [{"Status": "Starting", "StatusMessage": "a"}, {"Status": "Training", "StatusMessage": "b"}]
    assert described(SecondaryStatusTransitions=transitions).message == "b"
    assert described().message == ""
