"""Records that are cut or damaged are an error, after the records before them."""

import re
import struct

import pytest
from pipe_dataset.framings import masked, recordio, recordio_part, stream, tf_record

pytestmark = pytest.mark.tf
RECORDS = [b"1st", b"the second, of 25 bytes..", b"3"]
SECOND = len(tf_record(RECORDS[0]))
THIRD = SECOND + len(tf_record(RECORDS[1]))


@pytest.fixture
def read(dataset_of, tf):
    def listed(written, record_format="TFRecord"):
        records = []
        try:
            for record in dataset_of(written, record_format).as_numpy_iterator():
                records.append(record)  # noqa: PERF402 - those before an error too
        except tf.errors.OpError as error:
            return records, error.message
        return records, ""

    return listed


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


@pytest.mark.long
@pytest.mark.parametrize("record_format", ["TFRecord", "RecordIO"])
def test_a_stream_cut_at_any_place_is_an_error(read, record_format):
    whole = stream(record_format, RECORDS)
    ends = [len(stream(record_format, RECORDS[:count])) for count in range(len(RECORDS) + 1)]
    for end in range(len(whole)):
        complete = sum(each <= end for each in ends) - 1
        records, message = read(whole[:end], record_format)
        assert records == RECORDS[:complete]
        assert ("is cut" in message) == (end not in ends), (end, message)


def test_a_flipped_bit_or_a_missing_byte_at_any_place_of_tfrecord_is_an_error(read):
    whole = stream("TFRecord", RECORDS)
    # A third of the places: of each field some.
    for at in range(SECOND, THIRD, 3):
        for damaged in (flipped(whole, at), whole[:at] + whole[at + 1 :]):
            records, message = read(damaged)
            assert records == RECORDS[:1], at
            assert f"record 1, at byte {SECOND} of the stream, has a wrong checksum" in message


@pytest.mark.parametrize("size", [50_000, 400_000])
def test_a_large_damaged_record_is_an_error(read, size):
    large = tf_record(b"x" * size)
    after = stream("TFRecord", RECORDS)
    assert "has a wrong checksum" in read(flipped(large, size // 2) + after)[1]
    assert read(after + flipped(large, size // 2))[0] == RECORDS


@pytest.mark.parametrize(
    ("written", "kept", "problem"),
    [
        (recordio(b"a") + b"12345" + recordio(b"b"), [b"a"], "does not begin with RecordIO's magic number"),
        (recordio(b"a") + recordio_part(5, b"x") + recordio(b"b"), [b"a"], "is no part that RecordIO knows: 5"),
        (recordio_part(2, b"x") + recordio_part(3, b"y"), [], "has no first part"),
        (recordio_part(1, b"x") + recordio_part(1, b"y"), [], "follows one whose last part is missing"),
        (recordio(b"a") + recordio_part(1, b"x"), [b"a"], "is cut: the stream ends between its parts"),
        (recordio(b"a") + recordio_part(0, b"x" * 99_996)[:50_000], [b"a"], "is cut: the stream ends after 49992"),
    ],
    ids=["garbage", "an unknown part", "no first part", "no last part", "the end between parts", "a large part that is cut"],
)  # fmt: skip
def test_recordio_that_is_damaged_is_an_error(read, written, kept, problem):
    records, message = read(written, "RecordIO")
    assert records == kept
    assert problem in message


@pytest.mark.parametrize(
    ("written", "record_format", "hint"),
    [
        (recordio(b"abcdefgh"), "TFRecord", "is the stream TFRecord|the stream is RecordIO"),
        (tf_record(b"abcdefgh"), "RecordIO", "RecordIO's magic number"),
        (b"\x1f\x8b" + bytes(30), "TFRecord", "record_format says|is gzip"),
    ],
    ids=["RecordIO", "TFRecord", "gzip"],
)
def test_another_format_is_guessed(read, written, record_format, hint):
    assert re.search(hint, read(written, record_format)[1])


def test_a_length_beyond_all_memory_is_an_error_that_stays(read, pipe_host, tf):
    from scriptmode_runtime.tensorflow import PipeModeDataset

    length = struct.pack("<Q", 1 << 62)
    pipe_host.feed(length + masked(length) + b"x", tf_record(b"good"))
    iterator = iter(PipeModeDataset("train", "TFRecord"))
    for _ in range(2):
        with pytest.raises(tf.errors.OpError):
            next(iterator)
