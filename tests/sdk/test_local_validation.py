"""The local platform takes what the service takes, and says everything that is wrong otherwise."""

import pytest
from fakes.local_jobs import ABSENT, channel, put, request_for
from fakes.output_shapes import against, operation
from hypothesis import given, strategies as st

from scriptmode._core.request import service_model
from scriptmode._core.request.parse import parse_request
from scriptmode.errors import CredentialsError, DataError, DataNotFoundError, RequestError
from scriptmode_local._service import validation


def problem(request):
    with pytest.raises(RequestError) as caught:
        validation.validate_request(request)
    return str(caught.value)


EFS = {
    "FileSystemId": "fs-0123456789abcdef0", "FileSystemAccessMode": "ro", "FileSystemType": "EFS",
    "DirectoryPath": "/x",
}  # fmt: skip
FILE_SYSTEM = {"ChannelName": "train", "InputMode": "Pipe", "DataSource": {"FileSystemDataSource": EFS}}


def changed(path, value, uri="file:///data", **fields):
    """A good request with one place changed; ``ABSENT`` takes it out."""
    request = request_for("job", channels=[channel("train", uri)], **fields)
    put(request, path, value)
    return request


SOURCE = "InputDataConfig.0.DataSource.S3DataSource"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("RoleArn", ABSENT, "the request lacks 'RoleArn'; give role"),
        ("TrainingJobNames", "a", "the request has no field 'TrainingJobNames'; did you mean 'TrainingJobName'?"),
        ("Environment.A-B", "x", "the request is not valid: environment: a key of Environment is 'A-B'; it must match"),
        ("Environment.A\0", "x", r"a key of Environment is 'A\x00', which has a NUL character"),
        ("InputDataConfig.0.ContentType", 5, "inputs: InputDataConfig[0].ContentType is 5, an int; it must be a str"),
        ("ResourceConfig.InstanceCount", 0, "InstanceCount is 0; give at least 1"),
        ("ResourceConfig.InstanceType", "ml.p3.2xlarg", "did you mean 'ml.p3.2xlarge'?"),
        ("ResourceConfig.InstanceType", "ml.p3.2xlarge", "the local platform runs 'local_process'"),
        ("ResourceConfig", {}, "either InstanceType and InstanceCount, or InstanceGroups"),
        ("AlgorithmSpecification.AlgorithmName", "x", "AlgorithmName is not supported by the local platform yet"),
        ("InputDataConfig.0.ChannelName", "..", "channel '..': a channel name is the name of a folder"),
        ("InputDataConfig.0.CompressionType", "Gzip", "'train': CompressionType 'Gzip' is valid only in Pipe mode"),
        ("InputDataConfig", [FILE_SYSTEM], "'train': a file system is mounted, not streamed; give the channel Input"),
        (f"{SOURCE}.S3DataType", "Converse", "'train': S3DataType 'Converse' is not supported by the local"),
        (f"{SOURCE}.S3DataType", "AugmentedManifestFile", "File' is valid only in Pipe mode, not in File mode"),
        (f"{SOURCE}.S3Uri", "https://b/x", "'train': S3Uri is 'https://b/x'; the local platform reads s3:// and file"),
        (f"{SOURCE}.S3Uri", "file://data", "'file://data' has no absolute path; write file:///"),
        (f"{SOURCE}.InstanceGroupNames", ["gpus"], "'train': there is no instance group 'gpus'"),
        ("EnableNetworkIsolation", True, "EnableNetworkIsolation is True: hosts that are processes cannot be isolated"),
    ],
)
def test_an_error_names_field_value_and_limit(path, value, message):
    assert message in problem(changed(path, value))


def test_an_invalid_request_and_one_that_cannot_run_here_are_different_errors():
    assert problem(changed("Environment.A-B", "x")).startswith("the request is not valid: env")
    zipped = changed("InputDataConfig.0.CompressionType", "Gzip")
    assert problem(zipped).startswith("the local platform cannot run this job: channel 'train': CompressionType 'Gzip'")
    assert problem(changed("RoleArn", None)) == "the request is not valid: role: RoleArn is None; it must be a string"


def test_an_error_does_not_repeat_values_that_may_be_secret():
    assert "hunter2" not in problem(changed("HyperParameters.password", "hunter2" * 500))
    assert "hunter2" not in problem(changed("Environment.PASSWORD", "hunter2" * 500))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("Tags", [{"Key": "Größe 図_.:/=+-@", "Value": "\uff11 \u2167\u00a0"}]),
        ("VpcConfig", {"Subnets": ["not one!"] * 99, "SecurityGroupIds": ["sg-1"]}),
        ("RoleArn", "arn:aws:iam::<account>:role/x"),
        ("OutputDataConfig.KmsKeyId", "bad key!"),
        ("ResourceConfig.KeepAlivePeriodInSeconds", 10**6),
        ("Environment.ANY", "every\nthing \u2028"),
        (f"{SOURCE}.S3Uri", "file:///with space/ü/\n/100%"),
    ],
)
def test_what_the_service_takes_or_hosts_here_do_not_use_is_taken(path, value):
    validation.validate_request(changed(path, value))


def test_instance_groups_are_taken_with_the_channels_that_name_them():
    request = changed(f"{SOURCE}.InstanceGroupNames", ["gpus"])
    groups = [
        {"InstanceGroupName": name, "InstanceType": "local_process", "InstanceCount": 2} for name in ("gpus", "cpus")
    ]
    request["ResourceConfig"] = {"InstanceGroups": groups, "VolumeSizeInGB": 1}
    validation.validate_request(request)
    groups[1]["InstanceGroupName"] = "gpus"
    assert "the instance group name 'gpus' occurs 2 times" in problem(request)


def test_a_channel_that_is_called_as_a_fifo_of_another_is_refused():
    piped = channel("train", "file:///a", InputMode="Pipe")
    beside = [channel("train_1", "file:///b"), channel("train_x", "file:///b"), channel("trains_1", "file:///b")]
    assert problem(request_for("job", channels=[piped, *beside])) == (
        "the local platform cannot run this job: channel 'train_1': channel 'train' is in Pipe mode and has FIFOs of "
        "such names; rename one"
    )


def test_an_empty_input_and_one_that_cannot_be_read_are_errors(tmp_path):
    (tmp_path / "empty" / "below").mkdir(parents=True)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "data").symlink_to(tmp_path / "nowhere")
    nothing, missing = "there is nothing in it; put files into it", "there is no file or directory"
    for name, message in (("empty", nothing), ("link", "which does not exist"), ("missing", missing)):
        request = parse_request(changed(f"{SOURCE}.S3Uri", f"file://{tmp_path}/{name}", output=f"file://{tmp_path}"))
        with pytest.raises(DataNotFoundError, match=f"channel 'train': (?=.*{name}).*{message}") as caught:
            validation.check_paths(request, tmp_path / "jobs", {})
        assert caught.value.argument == "inputs"


@pytest.mark.parametrize(
    ("name", "member", "field"),
    [("OutputDataConfig", "S3OutputPath", "output_path"), ("CheckpointConfig", "S3Uri", "checkpoint_s3_uri")],
    ids=["output", "checkpoints"],
)
class TestOutputPlace:
    @pytest.fixture
    def check(self, tmp_path, name, member):
        def check_paths(uri):
            request = request_for("job", output=f"file://{tmp_path}/out") | {name: {member: uri}}
            validation.check_paths(parse_request(request), tmp_path, {})

        return check_paths

    @pytest.mark.parametrize(
        ("place", "why"),
        [
            ("/proc/x", "No such file or directory"),
            ("FOLDER/file", "File exists"),
            ("FOLDER/file/below", "Not a directory"),
        ],
        ids=["below proc", "a file", "below a file"],
    )
    def test_that_cannot_be_written_is_an_error_with_argument_path_and_reason(self, check, tmp_path, field, place, why):
        (tmp_path / "file").touch()
        place = place.replace("FOLDER", str(tmp_path))
        with pytest.raises(DataError) as caught:
            check(f"file://{place}")
        assert str(caught.value).startswith(f"{field} {place!r} cannot be written: {why}")
        assert caught.value.argument == field

    def test_that_can_be_written_is_made_and_left_empty(self, check, tmp_path, field):
        check(f"file://{tmp_path}/made/below")
        assert list((tmp_path / "made" / "below").iterdir()) == []

    def test_in_s3_needs_credentials(self, check, tmp_path, field, no_credentials):
        with pytest.raises(CredentialsError, match="s3://bucket/x"):
            check("s3://bucket/x")
        assert list(tmp_path.iterdir()) == []


def test_every_pattern_of_the_model_can_be_checked_here():
    known = service_model.shapes(service_model.REQUEST_SHAPE)
    patterns = {shape["pattern"] for shape in known.values() if "pattern" in shape}
    assert len(patterns) > 20
    for pattern in patterns:
        assert "\\p" not in service_model.compiled(pattern).pattern
        # The translation of the two is exact only together, and with the underscore.
        assert ("\\p{L}" in pattern) == ("\\p{N}" in pattern)
        assert "\\p{L}" not in pattern or "_" in pattern


WORDS = st.sampled_from(["", "a", "File", "x" * 70, "s3://bucket/key", "TrainingJobName"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 100) | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
PLACES = [
    "RoleArn", "TrainingJobName", "HyperParameters", "AlgorithmSpecification", "AlgorithmSpecification.TrainingInputMode",
    "ResourceConfig.InstanceCount", "InputDataConfig", "InputDataConfig.0", "InputDataConfig.0.ShuffleConfig",
    f"{SOURCE}.S3Uri", "StoppingCondition.MaxRuntimeInSeconds", "Tags", "EnableNetworkIsolation", "Unknown",
]  # fmt: skip


@given(st.sampled_from(PLACES), ANYTHING)
def test_whatever_botocore_refuses_is_refused(path, value):
    request = changed(path, value, "s3://bucket/key", output="s3://bucket/out")
    refused = against(operation("CreateTrainingJob").input_shape, request)
    ours = service_model.violations(request, lambda field, _: field.endswith("InstanceType"))
    assert any(ours) or not refused
