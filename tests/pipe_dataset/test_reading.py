"""What a program sees of channels in pipe mode."""

import subprocess
import sys

import pytest
from pipe_dataset.framings import MAGIC, stream

pytestmark = pytest.mark.tf
RECORDS = [b"%d " % number * (number % 40) for number in range(500)] + [bytes(range(256)) * 800, b"", b"the end"]
LINES = [record.replace(b"\n", b".").replace(b"\r", b".") for record in RECORDS]


@pytest.fixture
def dataset(tf):
    from scriptmode_runtime.tensorflow import PipeModeDataset

    def make(channel="train", record_format="TFRecord", **arguments):
        return PipeModeDataset(channel, record_format, **{"timeout": 10, **arguments})

    return make


def listed(dataset):
    return list(dataset.as_numpy_iterator())


@pytest.mark.parametrize("record_format", ["TFRecord", "RecordIO", "TextLine"])
@pytest.mark.parametrize("batch_size", [None, 1, 64, 10_000])
def test_records_come_as_scalars_or_as_vectors(pipe_host, dataset, record_format, batch_size):
    records = LINES if record_format == "TextLine" else RECORDS
    pipe_host.feed(stream(record_format, records))
    pipes = dataset(record_format=record_format, batch_size=batch_size)
    found = listed(pipes)
    if batch_size:
        assert pipes.element_spec.shape.as_list() == [None]
        assert {len(vector) for vector in found[:-1]} <= {batch_size}
        found = [record for vector in found for record in vector]
    else:
        assert pipes.element_spec.shape.as_list() == []
    assert found == records
    assert pipe_host.fed() == ["read"]


def test_recordio_is_the_format_if_none_is_named(pipe_host, tf):
    from scriptmode_runtime.tensorflow import PipeModeDataset

    pipe_host.feed(stream("RecordIO", [b"a", MAGIC * 3, b"xyz" + MAGIC + b"abcd" + MAGIC]))
    assert listed(PipeModeDataset("train")) == [b"a", MAGIC * 3, b"xyz" + MAGIC + b"abcd" + MAGIC]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\r\n\r\nb\rc\r\n", [b"a", b"", b"b\rc"]),
        (b"a\0b\n\xff\n", [b"a\0b", b"\xff"]),
        (b"x" * 2_000_000 + b"\ny", [b"x" * 2_000_000, b"y"]),
    ],
    ids=["nothing", "an empty line", "no end", "of Windows", "any bytes", "long"],
)
def test_lines_are_without_their_ends(pipe_host, dataset, text, lines):
    pipe_host.feed(text)
    assert listed(dataset(record_format="TextLine")) == lines


def test_every_iterator_is_an_epoch(pipe_host, dataset):
    pipe_host.feed(*(stream("TFRecord", [b"%d" % epoch, b"x"]) for epoch in range(3)))
    pipes = dataset()
    assert [listed(pipes) for _ in range(3)] == [[b"0", b"x"], [b"1", b"x"], [b"2", b"x"]]
    assert pipe_host.fed() == ["read"] * 3


def test_repeat_takes_an_epoch_each_time(pipe_host, dataset):
    pipe_host.feed(*(stream("TFRecord", [b"%d" % epoch]) for epoch in range(4)))
    assert listed(dataset().repeat(3)) == [b"0", b"1", b"2"]
    assert listed(dataset(batch_size=4).repeat().take(1))[0].tolist() == [b"3"]


def test_shard_prefetch_map_and_batch_work_as_on_any_dataset(pipe_host, dataset, tf):
    pipe_host.feed(stream("TFRecord", [b"%d" % number for number in range(10)]))
    numbers = dataset().shard(2, 1).map(tf.strings.to_number, num_parallel_calls=2).batch(3).prefetch(2)
    assert [vector.tolist() for vector in listed(numbers)] == [[1, 3, 5], [7, 9]]


def test_a_reader_that_takes_enough_ends_the_epoch(pipe_host, dataset):
    endless = (stream("TFRecord", [b"%d" % number] * 1000) for number in range(1_000_000))
    pipe_host.feed(endless, stream("TFRecord", [b"next"]))
    assert listed(dataset().take(5)) == [b"0"] * 5
    assert listed(dataset()) == [b"next"]
    assert pipe_host.fed() == ["left", "read"]


def test_channels_are_independent(pipe_host, dataset, tf):
    pipe_host.channels(train="Pipe", test="Pipe")
    pipe_host.feed(stream("TFRecord", [b"a", b"b"]), channel="test")
    pipe_host.feed(stream("TFRecord", [b"1", b"2"]), channel="train")
    both = tf.data.Dataset.zip((dataset("train"), dataset("test")))
    assert listed(both) == [(b"1", b"a"), (b"2", b"b")]


def test_an_epoch_may_be_empty(pipe_host, dataset):
    pipe_host.feed(b"", stream("TFRecord", [b"x"]))
    assert [listed(dataset()), listed(dataset())] == [[], [b"x"]]


def test_a_graph_that_is_not_eager_reads_too(pipe_host, tf, dataset):
    pipe_host.feed(stream("TFRecord", [b"x", b"y"]))
    with tf.Graph().as_default():
        record = tf.compat.v1.data.make_one_shot_iterator(dataset()).get_next()
        with tf.compat.v1.Session() as session:
            assert [session.run(record), session.run(record)] == [b"x", b"y"]


def test_the_benchmark_is_written_to_stderr(pipe_host, dataset, capfd):
    pipe_host.feed(stream("TFRecord", [b"x"] * 25))
    listed(dataset(benchmark=True, benchmark_records_interval=10))
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("scriptmode:")]
    assert [line.partition(" records")[0] for line in lines] == [
        "scriptmode: channel 'train', epoch 0, so far: 10",
        "scriptmode: channel 'train', epoch 0, so far: 20",
        "scriptmode: channel 'train', epoch 0, at the end: 25",
    ]


@pytest.mark.parametrize(
    ("channel", "message"),
    [
        ("trian", r"channel 'trian' is not in .*inputdataconfig.json; the channels there are: 'train', 'labels'"),
        ("labels", r"channel 'labels' is in File mode .*input_mode='Pipe'"),
    ],
)
def test_a_channel_that_is_not_a_pipe_is_named(pipe_host, dataset, tf, channel, message):
    pipe_host.channels(train="Pipe", labels="File")
    with pytest.raises(tf.errors.OpError, match=message):
        listed(dataset(channel))


def test_a_folder_of_another_host_is_named(pipe_host, dataset, tf, monkeypatch):
    monkeypatch.setenv("SAGEMAKER_BASE_DIR", "/nowhere")
    with pytest.raises(tf.errors.OpError, match="/nowhere/input/config/inputdataconfig.json cannot be read"):
        listed(dataset())


def test_a_file_that_is_not_a_fifo_is_named(pipe_host, dataset, tf):
    (pipe_host.data / "train_0").write_bytes(b"")
    with pytest.raises(tf.errors.OpError, match="train_0 is no FIFO"):
        listed(dataset())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"channel": "a/b"}, "channel 'a/b' is not a name of a channel"),
        ({"record_format": "CSV"}, "record_format 'CSV' is none of 'RecordIO', 'TFRecord', 'TextLine'"),
        ({"batch_size": -1}, "batch_size is -1"),
        ({"max_corrupted_records_to_skip": -1}, "max_corrupted_records_to_skip is -1"),
        ({"timeout": 0}, "timeout is 0"),
    ],
    ids=lambda value: None if isinstance(value, str) else next(iter(value)),
)
def test_an_argument_that_cannot_be_is_named(dataset, arguments, message):
    with pytest.raises(ValueError, match=message):
        dataset(**arguments)


def test_folders_that_are_given_are_used(pipe_host, dataset, monkeypatch, tmp_path):
    monkeypatch.delenv("SAGEMAKER_BASE_DIR")
    pipe_host.feed(stream("TFRecord", [b"x"]))
    state = tmp_path / "new" / "state"
    folders = {"pipe_dir": str(pipe_host.data), "config_dir": str(pipe_host.config.parent), "state_dir": str(state)}
    assert listed(dataset(**folders)) == [b"x"]
    assert [path.name for path in state.iterdir()] == ["train"]


def test_tensorflow_is_imported_when_the_dataset_is_asked_for():
    program = (
        "import sys, scriptmode_runtime.tensorflow as room\n"
        "assert 'tensorflow' not in sys.modules\n"
        "assert not hasattr(room, 'nothing')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20)
