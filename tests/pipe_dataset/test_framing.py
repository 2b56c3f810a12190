"""Any records, however they are written, arrive as they are."""

from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pipe_dataset.framings import MAGIC, stream

pytestmark = pytest.mark.tf
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
def read(pipe_host, tf):
    from scriptmode_runtime.tensorflow import PipeModeDataset

    epoch = iter(range(10_000))

    @cache
    def dataset(record_format, batch_size):
        return PipeModeDataset("train", record_format, batch_size=batch_size, timeout=60)

    def listed(written, record_format, batch_size=None):
        pipe_host.feed(written, first=next(epoch))
        found = list(dataset(record_format, batch_size).as_numpy_iterator())
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
