"""Of each line of an augmented manifest the named attributes are sent: objects, or the JSON text as it is written."""

import json
from itertools import islice

import pytest
from fakes.memory_objects import MemoryObjects
from hypothesis import given, strategies as st

from scriptmode.errors import DataError, DataNotFoundError
from scriptmode_local._data import listing, manifests
from scriptmode_local._data.channel_source import ChannelSource
from scriptmode_local._data.object_store import StoredObject

URI = "s3://lists/m.jsonl"


def source(*names, uri=URI, **fields):
    return ChannelSource("train", "Pipe", "AugmentedManifestFile", uri, attribute_names=names, **fields)


def store(*lines, **objects):
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    images = {f"s3://b/{name}": content for name, content in objects.items()}
    return MemoryObjects({URI: "\n".join(texts).encode(), **images})


def pieces(objects, channel, *, epoch=0, host=0, count=1):
    return list(listing.pieces(channel, objects.of, epoch=epoch, host=host, count=count))


def texts(objects, channel, **place):
    return [piece.data.decode() for piece in pieces(objects, channel, **place)]


@pytest.mark.parametrize(
    "text", ["1.50", "-2E+3", "123456789012345678901234567890", "null", '"\\u56f3"', '"図"', '{"a":  {"b": []}}', '""']
)
def test_an_attribute_is_sent_as_it_is_written(text):
    line = f'  {{"x" : "}}" ,"a":\t{text}  , "y": [1]}}\r'
    assert texts(store(line), source("a")) == [text]


def test_empty_lines_and_a_missing_last_line_feed_are_ignored():
    assert texts(store('{"a": 1}', "", " \r", '{"a": 2}'), source("a")) == ["1", "2"]


@pytest.mark.parametrize(
    ("line", "names", "message"),
    [
        ('{"a": 1', ["a"], "line 2 is not JSON: .*; each line must be one JSON object"),
        ("[" * 100_000, ["a"], "line 2 is not JSON: maximum recursion depth"),
        ("[1]", ["a"], r"line 2 is '\[1\]'; each line must be one JSON object"),
        ('{"b": 1}', ["a"], "line 2 has no attribute 'a'; use b; add it to the line or"),
        (
            '{"a-ref": 1}',
            ["a-ref"],
            r"line 2, attribute 'a-ref' is 1; an attribute named \*-ref must be an object's s3:",
        ),
        ('{"a-ref": "one.jpg"}', ["a-ref"], "line 2, attribute 'a-ref' is 'one.jpg'; an attribute"),
    ],
)
def test_an_invalid_line_is_named_with_its_number_and_attribute(line, names, message):
    good = json.dumps(dict.fromkeys(names, "s3://b/one"))
    with pytest.raises(DataError, match=f"^{URI}: {message}"):
        pieces(store(good, line, one=b""), source(*names))


@pytest.mark.parametrize(
    ("second", "error", "message"),
    [
        ("s3://b/gone", DataNotFoundError, ": s3://b/gone: there is no such"),
        # In S3 a manifest names no files of this machine.
        ("file:///etc/hostname", DataError, " is 'file:///etc/hostname'; a manifest in S3 may name only s3:"),
    ],
)
def test_a_wrong_object_is_named_with_its_line_after_all_before_it(second, error, message):
    objects = store({"a-ref": "s3://b/one"}, {"a-ref": second}, one=b"1")
    found = listing.pieces(source("a-ref"), objects.of, epoch=0, host=0, count=1)
    assert next(found).uri == "s3://b/one"
    with pytest.raises(error, match=f"^{URI}: line 2, attribute 'a-ref'{message}"):
        next(found)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", f"{URI}: the augmented manifest has no line"),
        (b"\n\n", "has no line"),
        (b'{"a": 1}\n{"a": "\xff"}\n', f"{URI}: line 2 is not UTF-8"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_named(content, message):
    with pytest.raises(DataError, match=message):
        pieces(MemoryObjects({URI: content}), source("a"))


def test_a_channel_without_attribute_names_is_an_error():
    with pytest.raises(DataError, match="the channel has no AttributeNames, which an augmented manifest needs; add th"):
        pieces(store({"a": 1}), source())


def test_a_file_without_lines_is_not_read_into_memory(monkeypatch):
    monkeypatch.setattr(manifests, "MANIFEST_CHUNK_BYTES", 10)
    monkeypatch.setattr(manifests, "LONGEST_LINE", 40)
    with pytest.raises(DataError, match=f"{URI}: line 2 is longer than 40 bytes; are these JSON lines"):
        pieces(MemoryObjects({URI: b'{"a": 1}\n' + b"x" * 100}), source("a"))


def test_the_first_lines_come_before_the_last_is_read():
    class Endless(MemoryObjects):
        def find(self, uri):
            return StoredObject(uri, 1 << 50)

        def read(self, item, start, end):
            return [b'{"a": 1}\n' * 100]

    found = listing.pieces(source("a"), Endless().of, epoch=0, host=0, count=1)
    assert len(list(islice(found, 1000))) == 1000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=3), values, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@given(values=st.lists(JSON, min_size=1, max_size=4), part=st.integers(1, 60), ascii_only=st.booleans())
def test_any_value_is_sent_as_its_text_from_chunks_of_any_size(values, part, ascii_only):
    objects = store(*(json.dumps({"x": 1, "a": value}, ensure_ascii=ascii_only) for value in values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifests, "MANIFEST_CHUNK_BYTES", part)
        found = texts(objects, source("a"))
    assert found == [json.dumps(value, ensure_ascii=ascii_only) for value in values]
