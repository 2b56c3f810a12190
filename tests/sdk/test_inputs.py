from pathlib import Path

import pytest

from scriptmode import FileSystemInput, SpecError, TrainingInput
from scriptmode.request.inputs import parse_inputs
from scriptmode.spec.inputs import Channel


def test_one_string_is_the_channel_named_training():
    assert parse_inputs("s3://bucket/train") == (Channel("training", TrainingInput("s3://bucket/train")),)


def test_no_inputs_give_no_channels():
    assert parse_inputs(None) == ()


def test_a_dict_names_its_channels_in_order():
    sharded = TrainingInput("s3://b/t", distribution="ShardedByS3Key")
    disk = FileSystemInput("fs-12345678", "EFS", "/data")
    channels = parse_inputs({"train": sharded, "eval": "file:///data", "disk": disk})
    assert channels == (
        Channel("train", sharded),
        Channel("eval", TrainingInput("file:///data")),
        Channel("disk", disk),
    )


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        pytest.param("/data/train", "inputs '/data/train': there is no file or directory", id="a path"),
        pytest.param("b/data", "correct the path or create it; for data in S3 write 's3://b/data'", id="a bucket"),
        pytest.param("sdks", f"there is no file or directory '{Path.cwd()}/sdks'; did you mean 'sdk'?", id="a typo"),
        pytest.param(
            "file://tmp/x", "comes an absolute path: 'file:///tmp/x'", id="an absolute path without its slash"
        ),
        pytest.param("file:/tmp/x", "inputs is 'file:/tmp/x'; give 'file:///tmp/x'", id="a file URI of one slash"),
        pytest.param("s3:/bucket/x", "inputs is 's3:/bucket/x'; give 's3://bucket/x'", id="an S3 URI of one slash"),
        pytest.param("", "inputs is ''; give an s3:// URI or a path", id="nothing"),
        pytest.param(
            "file://data/x", f"comes an absolute path: 'file://{Path.cwd()}/data/x'", id="a relative file URI"
        ),
        pytest.param(
            {"train": "gs://b/x"}, "inputs['train'] is 'gs://b/x', with the scheme 'gs'", id="a foreign scheme"
        ),
        pytest.param("s3://", "names no bucket", id="no bucket"),
        pytest.param({"train": 3}, "inputs['train'] is 3; give a path, a URI such as", id="a number"),
        pytest.param(5, "or a dict of them by channel", id="a number without a channel"),
        pytest.param({"tr ain": "s3://b"}, "channel name 'tr ain'", id="a name with a space"),
        pytest.param(["s3://b"], "inputs[0] is 's3://b', which has no channel_name", id="a list"),
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
        ({"distribution": "Sharded"}, "'Sharded'; did you mean 'ShardedByS3Key'?"),
        ({"s3_data_type": "S3prefix"}, "did you mean 'S3Prefix'?"),
        ({"compression": "gzip"}, "did you mean 'Gzip'?"),
        ({"record_wrapping": "recordio"}, "'recordio'"),
        ({"input_mode": "pipe"}, "did you mean 'Pipe'?"),
        ({"attribute_names": "source-ref"}, "lists of names"),
    ],
)
def test_a_word_the_service_does_not_know_is_named(arguments, message):
    with pytest.raises(SpecError) as caught:
        TrainingInput("s3://b/x", **arguments)
    assert message in str(caught.value)


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


def test_a_uri_that_became_a_path_object_is_told():
    with pytest.raises(SpecError, match="inputs is 's3:/bucket/train'; give 's3://bucket/train'"):
        parse_inputs(Path("s3://bucket/train"))
