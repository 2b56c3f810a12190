"""What a program and Keras see of channels in pipe mode: any records, however they are written, epoch by epoch."""

import subprocess
import sys
import warnings

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pipe_dataset.framings import MAGIC, line, stream

pytestmark = pytest.mark.tf


@pytest.fixture
def dataset(tf):
    from scriptmode_runtime.tensorflow import PipeModeDataset

    def make(channel="train", record_format="TFRecord", **arguments):
        return PipeModeDataset(channel, record_format, **{"timeout": 10, **arguments})

    return make


def listed(dataset):
    return list(dataset.as_numpy_iterator())


def test_records_come_as_scalars_or_as_vectors_and_recordio_is_the_format_if_none_is_named(pipe_host, tf):
    from scriptmode_runtime.tensorflow import PipeModeDataset

    records = [b"a", MAGIC * 3, b"xyz" + MAGIC + b"abcd" + MAGIC]
    pipe_host.feed(stream("RecordIO", records), stream("RecordIO", records))
    scalars, vectors = PipeModeDataset("train"), PipeModeDataset("train", batch_size=2)
    assert (listed(scalars), scalars.element_spec.shape.as_list()) == (records, [])
    assert [vector.tolist() for vector in listed(vectors)] == [records[:2], records[2:]]
    assert vectors.element_spec.shape.as_list() == [None]
    assert pipe_host.fed() == ["read"] * 2


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"a\r\n\r\nb\rc\r\n", [b"a", b"", b"b\rc"]),
        (b"a\0b\n\xff\n", [b"a\0b", b"\xff"]),
        (b"x" * 2_000_000 + b"\ny", [b"x" * 2_000_000, b"y"]),
    ],
    ids=["of Windows", "any bytes", "long"],
)
def test_lines_are_without_their_ends(pipe_host, dataset, text, lines):
    pipe_host.feed(text)
    assert listed(dataset(record_format="TextLine")) == lines


def test_every_iterator_is_an_epoch_which_may_be_empty(pipe_host, dataset):
    pipe_host.feed(b"", *(stream("TFRecord", [b"%d" % epoch, b"x"]) for epoch in range(5)))
    pipes = dataset()
    assert [listed(pipes) for _ in range(3)] == [[], [b"0", b"x"], [b"1", b"x"]]
    assert listed(pipes.repeat(2)) == [b"2", b"x", b"3", b"x"]
    assert listed(dataset(batch_size=4).repeat().take(1))[0].tolist() == [b"4", b"x"]


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


def test_a_graph_that_is_not_eager_reads_too(pipe_host, tf, dataset):
    pipe_host.feed(stream("TFRecord", [b"x", b"y"]))
    with tf.Graph().as_default():
        record = tf.compat.v1.data.make_one_shot_iterator(dataset()).get_next()
        with tf.compat.v1.Session() as session:
            assert [session.run(record), session.run(record)] == [b"x", b"y"]


@pytest.mark.parametrize(
    ("channel", "message"),
    [
        ("trian", r"channel 'trian' is not in .*inputdataconfig.json: give"),
        ("labels", r"channel 'labels' is in File mode .*input_mode='Pipe'"),
        ("train", "train_0 is no FIFO"),
    ],
)
def test_a_channel_that_is_not_a_pipe_is_named(pipe_host, dataset, tf, channel, message):
    pipe_host.channels(train="Pipe", labels="File")
    (pipe_host.data / "train_0").write_bytes(b"")
    with pytest.raises(tf.errors.OpError, match=message):
        listed(dataset(channel))


def test_a_folder_of_another_host_is_named(dataset, tf, monkeypatch):
    monkeypatch.setenv("SAGEMAKER_BASE_DIR", "/nowhere")
    with pytest.raises(tf.errors.OpError, match="/nowhere/input/config/inputdataconfig.json cannot be read"):
        listed(dataset())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"channel": "a/b"}, "channel 'a/b' is not a name of a channel"),
        ({"record_format": "CSV"}, "record_format 'CSV' is none of 'RecordIO', 'TFRecord', 'TextLine'"),
        ({"batch_size": -1}, "batch_size is -1"),
        ({"max_corrupted_records_to_skip": 1}, "max_corrupted_records_to_skip is not 0"),
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
    subprocess.run([sys.executable, "-c", program], check=True, timeout=600)


# Small ones that TensorFlow keeps in place, such as hold the magic wherever it can be, and some that are read directly.
BYTES = st.one_of(
    st.binary(max_size=60),
    st.lists(st.sampled_from([MAGIC, b"a", b"bcd", b"1234", MAGIC[:3]]), max_size=12).map(b"".join),
    st.integers(30_000, 70_000).map(lambda size: bytes(range(251)) * (size // 251) + MAGIC),
)
RECORDS = st.lists(BYTES, max_size=12)
MANY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def cut(data, places):
    places = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[begin:end] for begin, end in zip(places, places[1:])]


@pytest.fixture
def read(dataset_of):
    def listed(written, record_format, batch_size=None):
        found = list(dataset_of(written, record_format, batch_size=batch_size).as_numpy_iterator())
        return [record for vector in found for record in vector] if batch_size else found

    return listed


@MANY
@pytest.mark.parametrize("record_format", ["RecordIO", "TFRecord"])
@given(records=RECORDS, places=st.lists(st.integers(0, 1 << 20), max_size=6), batch_size=st.sampled_from([None, 1, 5]))
def test_any_records_in_any_writes(read, record_format, records, places, batch_size):
    written = cut(stream(record_format, records), places)
    assert read(written, record_format, batch_size) == records


@MANY
@given(text=st.binary(max_size=200), places=st.lists(st.integers(0, 200), max_size=6))
def test_any_lines_in_any_writes(read, text, places):
    lines = text.split(b"\n")
    expected = [line.removesuffix(b"\r") for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    assert read(cut(text, places), "TextLine") == expected


@pytest.mark.parametrize("sizes", [(22, 23), (32_768, 32_769), (262_144, 1), (3_000_000, 0, 5)], ids=str)
@pytest.mark.parametrize("record_format", ["RecordIO", "TFRecord"])
def test_sizes_at_which_something_changes(read, tf, tmp_path, record_format, sizes):
    records = [bytes([number + 1]) * size for number, size in enumerate(sizes)] * 3
    if record_format == "TFRecord":
        with tf.io.TFRecordWriter(str(tmp_path / "file")) as writer:
            for record in records:
                writer.write(record)
        written = (tmp_path / "file").read_bytes()
    else:
        written = stream(record_format, records)
    for batch_size in (None, 2):
        assert read([written], record_format, batch_size) == records


ROWS = b"".join(line(b"%d" % number) for number in range(12))


@pytest.fixture
def fit(tf, pipe_host):
    from scriptmode_runtime.tensorflow import PipeModeDataset

    def fitted(change=lambda dataset: dataset, *, is_built=True, **arguments):
        def parse(rows):
            numbers = tf.strings.to_number(rows)[:, tf.newaxis]
            return numbers, 2 * numbers

        seen = []

        class Count(tf.keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                seen.append(batch)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            layers = [tf.keras.Input((1,)), tf.keras.layers.Dense(1)]
            model = tf.keras.Sequential(layers if is_built else layers[1:])
            model.compile("sgd", "mse")
            batches = PipeModeDataset("train", "TextLine", batch_size=4, timeout=60).map(parse)
            model.fit(change(batches), verbose=0, callbacks=[Count()], **arguments)
        return seen

    return fitted


@pytest.mark.parametrize("is_built", [True, False], ids=["built", "built by fit"])
def test_an_epoch_of_fit_is_an_epoch_of_the_channel(pipe_host, fit, is_built):
    pipe_host.feed(ROWS, ROWS, ROWS)
    assert fit(epochs=3, is_built=is_built) == [0, 1, 2] * 3
    assert pipe_host.fed() == ["read"] * 3


def test_with_steps_per_epoch_one_iterator_goes_on_through_the_epochs(pipe_host, fit):
    pipe_host.feed(ROWS, ROWS)
    assert fit(lambda batches: batches.repeat(), epochs=3, steps_per_epoch=2) == [0, 1] * 3
    assert pipe_host.endings[:1] == ["read"]


def test_a_distributed_dataset_reads_each_epoch_once(pipe_host, tf):
    from scriptmode_runtime.tensorflow import PipeModeDataset

    pipe_host.feed(ROWS, ROWS)
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    rows = strategy.experimental_distribute_dataset(PipeModeDataset("train", "TextLine", batch_size=4, timeout=60))
    for _ in range(2):
        assert sum(len(batch) for batch in rows) == 12
    assert pipe_host.fed() == ["read"] * 2
