"""A manifest is a prefix and names in their order; each of them must exist."""

import json
import threading

import pytest
from fakes.memory_objects import MemoryObjects
from hypothesis import given, strategies as st

from scriptmode.errors import DataError, DataNotFoundError
from scriptmode_local._data import listing, manifests
from scriptmode_local._data.channel_source import ChannelSource
from scriptmode_local._data.file_store import FileStore

URI = "s3://lists/m.json"


def source(uri=URI, **fields):
    return ChannelSource("train", "Pipe", "ManifestFile", uri, **fields)


def store(manifest, *names, prefix="s3://b/data/"):
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    return MemoryObjects({URI: text, **{prefix + name: name.encode() for name in names}})


def entries(objects, channel=None, *, epoch=0, host=0, count=1):
    return list(listing.entries(channel or source(), objects.of, epoch=epoch, host=host, count=count))


def test_objects_are_looked_up_in_parallel():
    together = threading.Barrier(8, timeout=20)

    class Slow(MemoryObjects):
        def find(self, uri):
            if uri != URI:
                together.wait()
            return super().find(uri)

    names = [str(number) for number in range(16)]
    objects = Slow(store([{"prefix": "s3://b/data/"}, *names], *names).contents)
    assert [entry.name for entry in entries(objects)] == names


def test_objects_before_an_invalid_element_come_before_the_error():
    names = [str(number) for number in range(30)]
    objects = store([{"prefix": "s3://b/data/"}, *names, 7], *names)
    found, got = listing.entries(source(), objects.of, epoch=0, host=0, count=1), []
    with pytest.raises(DataError, match="element 32 of the manifest is 7"):
        got.extend(entry.name for entry in found)
    assert got == names


def test_a_host_looks_up_its_own_shard_only():
    names = [str(number) for number in range(10)]
    objects = store([{"prefix": "s3://b/data/"}, *names], *names)
    found = entries(objects, source(is_sharded=True), host=1, count=3)
    assert [entry.name for entry in found] == ["1", "4", "7"]
    assert len(objects.asked) == 1 + 3


def test_files_of_this_machine_are_named_below_a_file_prefix(tmp_path, hostile_name):
    (tmp_path / hostile_name).mkdir()
    (tmp_path / hostile_name / hostile_name).write_text("x")
    manifest = tmp_path / "m.json"
    manifest.write_text(json.dumps([{"prefix": f"file://{tmp_path}/"}, f"{hostile_name}/{hostile_name}"]))
    found = listing.entries(source(manifest.as_uri()), lambda _: FileStore(), epoch=0, host=0, count=1)
    assert [entry.name for entry in found] == [f"{hostile_name}/{hostile_name}"]


@pytest.mark.parametrize(
    ("prefix", "name", "expected"),
    [
        ("{}/c/", "a%20b", "c/a b"), ("{}/c%20d", "/a%20b", "c d/a b"), ("{}/c%20d/a%20", "b", "c d/a b"),
        ("{}/c/", "as%20written", "c/as%20written"), ("{}/c%20d/", "e%2Ff", "c d/e/f"),
        ("localhost{}/c/", "a b", "c/a b"), ("{}//c/./", "a b", "c/a b"),
    ],
)  # fmt: skip
def test_percent_encoded_names_of_files_are_those_of_the_files(tmp_path, prefix, name, expected):
    for folder in ("c", "c d"):
        (tmp_path / folder / "e").mkdir(parents=True)
        for path in ("a b", "as%20written", "e/f"):
            (tmp_path / folder / path).write_text("x")
    manifest = tmp_path / "m.json"
    manifest.write_text(json.dumps([{"prefix": f"file://{prefix.format(tmp_path)}"}, name]))
    found = listing.entries(source(manifest.as_uri()), lambda _: FileStore(), epoch=0, host=0, count=1)
    uri = f"file://{tmp_path}/{expected}"
    assert [(entry.name, entry.stored.uri) for entry in found] == [(expected.partition("/")[2], uri)]


def test_a_manifest_in_s3_names_no_files_of_this_machine():
    objects = store([{"prefix": "file:///etc/"}, "hostname"])
    message = (
        f"^{URI}: the manifest's prefix is 'file:///etc/'; a manifest in S3 may name only s3:// objects; "
        "upload that object to S3, or pass the manifest as a file:// URI"
    )
    with pytest.raises(DataError, match=message):
        entries(objects)


def test_a_manifest_of_this_machine_may_name_objects_of_s3(tmp_path):
    objects = MemoryObjects(
        {"s3://b/data/a": b"", (tmp_path / "m.json").as_uri(): b'[{"prefix": "s3://b/data/"}, "a"]'}
    )
    assert [entry.name for entry in entries(objects, source((tmp_path / "m.json").as_uri()))] == ["a"]


def test_a_prefix_that_ends_within_a_name_keeps_the_name_whole():
    objects = store([{"prefix": "s3://b/data/part-"}, "1", "2/x"], "1", "2/x", prefix="s3://b/data/part-")
    assert [entry.name for entry in entries(objects)] == ["part-1", "part-2/x"]


FORM = r'the form is \[{"prefix": "s3://bucket/folder/"}, "name", "name", ...\]'


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        pytest.param(b"", "the manifest is not JSON: Expecting value: .*; " + FORM, id="empty"),
        pytest.param(b'{"prefix": "s3://b/"}', 'begins with {"prefix": "s3://b/"}, not with a prefix', id="an object"),
        pytest.param(["a", "b"], 'begins with "a", not with a prefix', id="no prefix"),
        pytest.param([{"prefix": "b/data/"}, "a"], "not with a prefix", id="a prefix that is no URI"),
        pytest.param([{"prefix": "s3://b/"}], "the manifest names no object", id="a prefix alone"),
        pytest.param([{"prefix": "s3://b/"}, "a", 7], "element 3 of the manifest is 7, not a name; ", id="a number"),
        pytest.param(
            b'[{"prefix": "s3://b/"}, "a" "b"]', "not JSON: Expecting ',' delimiter: line 1 column 29", id="no comma"
        ),
        pytest.param(b'[{"prefix": "s3://b/"}, "a', "not JSON: Unterminated string", id="half a name"),
        pytest.param(b'[{"prefix": "s3://b/"}, "a"] x', "not JSON: Extra data", id="more"),
        pytest.param(b"[" * 100_000, "not JSON: maximum recursion depth exceeded", id="nested"),
        pytest.param(b'[{"prefix": "s3://b/"}, "\xff"]', "invalid start byte", id="not UTF-8"),
    ],
)
def test_the_error_of_an_invalid_manifest_names_it_and_the_reason(manifest, message):
    objects = store(manifest, "a", prefix="s3://b/")
    with pytest.raises(DataError, match=message) as raised:
        entries(objects)
    assert str(raised.value).startswith(URI)


def test_a_missing_object_is_named_with_the_manifest():
    objects = store([{"prefix": "s3://b/data/"}, "a", "gone", "b"], "a", "b")
    found = listing.pieces(source(), objects.of, epoch=0, host=0, count=1)
    assert next(found).uri == "s3://b/data/a"
    with pytest.raises(DataNotFoundError, match=f"^{URI}: it names s3://b/data/gone: there is no such object"):
        next(found)


NAMES = st.lists(st.text(st.characters(codec="utf-8"), max_size=12), max_size=8)


@given(names=NAMES, part=st.integers(1, 40), mark=st.booleans(), ascii_only=st.booleans())
def test_a_manifest_is_read_in_chunks_of_any_size(names, part, mark, ascii_only):
    text = json.dumps([{"prefix": "s3://b/"}, *names], ensure_ascii=ascii_only)
    objects = MemoryObjects({URI: text.encode("utf-8-sig" if mark else "utf-8")})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifests, "MANIFEST_CHUNK_BYTES", part)
        prefix, found = manifests.names(URI, objects)
        assert (prefix, list(found)) == ("s3://b/", names)
