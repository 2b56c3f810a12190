"""File mode downloads and verifies every object whole, or raises an error with the reason."""

import errno
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes.faulty_s3 import Fault
from fakes.processes import open_files, until
from fakes.views import WatchedObjects

from scriptmode.errors import DataError, DataNotFoundError
from scriptmode_local._data import staging
from scriptmode_local._data.object_store import CHUNK_BYTES as PART, StoredObject
from scriptmode_local._data.s3_store import S3Store

pytestmark = pytest.mark.slow


def entries(prefix="s3://bkt/"):
    store = S3Store()
    return [(item, item.uri[len(prefix) :]) for item in store.objects(prefix)]


def fetched(folder, found, reports=None):
    names = staging.fetch(
        found, folder, lambda done, total: (reports if reports is not None else []).append((done, total))
    )
    return names, {name: (folder / name).read_bytes() for name in names}


def test_objects_of_any_size_are_downloaded_whole(server, tmp_path):
    sizes = [0, 1, 100_000, PART - 1, PART, PART + 1, 3 * PART + 5]
    server.contents = {f"{number}/x y": os.urandom(size) for number, size in enumerate(sizes)}
    reports = []
    names, contents = fetched(tmp_path / "data", entries(), reports)
    assert names == list(server.contents)
    assert contents == server.contents
    assert reports[-1] == (sum(sizes), sum(sizes))
    assert {oct((tmp_path / "data" / name).stat().st_mode & 0o777) for name in names} == {"0o444"}


def test_files_are_copied_and_the_originals_stay(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for number, size in enumerate([0, 10, 20_000_000]):
        (source / f"{number}").write_bytes(os.urandom(size))
    found = [
        (item, item.uri.rpartition("/")[2])
        for item in staging.Stores().store_of("file:///").objects(f"file://{source}")
    ]
    _, contents = fetched(tmp_path / "data", found)
    assert contents == {path.name: path.read_bytes() for path in source.iterdir()}
    assert all(path.stat().st_nlink == 1 and path.stat().st_mode & 0o200 for path in source.iterdir())


def test_a_deleted_object_stops_the_downloads(server, tmp_path):
    server.contents = {f"{number:04}": b"x" * 10_000 for number in range(2_000)}
    found = entries()
    del server.contents["0003"]
    server.fault = lambda *_: Fault(act=lambda: time.sleep(0.02))
    with pytest.raises(DataNotFoundError, match="s3://bkt/0003: the object was deleted while the job read its channel"):
        fetched(tmp_path / "data", found)
    assert server.gets < 1_000
    until(lambda: not any(str(tmp_path) in file for file in open_files("self")))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["x", "x"], "s3://b/1: two objects would both become 'x'; rename one of them"),
        (["a", "a/b"], "s3://b/1: 'a' would be a file and a directory; rename one of the objects"),
        (["a/b", "a"], "s3://b/1: two objects would both become 'a'; rename one of them"),
        (["a//b"], "s3://b/0: its name cannot be a file's path; rename the object"),
    ],
)
def test_two_objects_are_not_one_file(tmp_path, names, message):
    with pytest.raises(DataError, match=message):
        fetched(tmp_path / "data", [(StoredObject(f"s3://b/{number}", 1), name) for number, name in enumerate(names)])


def test_an_object_that_a_manifest_names_twice_is_one_file(server, tmp_path):
    server.contents = {"a": b"a", "b": b"b"}
    names, contents = fetched(tmp_path / "data", [*entries(), *entries()])
    assert names == ["a", "b"]
    assert contents == server.contents


def test_a_name_that_is_too_long_for_a_file_is_an_error_that_names_its_object(server, tmp_path):
    name = "n" * 300
    server.contents = {"a": b"a", name: b"b"}
    message = (
        rf"s3://bkt/{name}: it cannot be stored in .*: File name too long; rename the object, or use input mode Pipe"
    )
    with pytest.raises(DataError, match=message):
        fetched(tmp_path / "data", entries())


def test_a_file_that_cannot_be_read_is_not_taken_for_a_full_disk(tmp_path, views):
    (tmp_path / "control").mkdir()
    place = tmp_path / "mounted"
    views.mount(WatchedObjects({"a": bytes(3_000_000)}, tmp_path / "control").tree, place)
    found = [(item, "a") for item in staging.Stores().store_of("file:///").objects(f"file://{place}")]
    (tmp_path / "control" / "deleted").touch()
    with pytest.raises(DataError, match=rf"file://{place}/a: it cannot be read: .*Input/output error"):
        fetched(tmp_path / "data", found)


def test_a_disk_that_is_too_small_is_an_error_before_any_download(server, tmp_path, monkeypatch):
    # What is left of s3://bkt/0 when as much is cut off as file:// has; opening it would wait for ever.
    monkeypatch.chdir(tmp_path)
    Path("t").mkdir()
    os.mkfifo("t/0")
    message = r"2 objects of [0-9]+\.\d GB do not fit on the disk of .*, which has .* free; free some space, set SCRIPTMODE_DATA_DIR"
    with pytest.raises(DataError, match=message):
        fetched(tmp_path / "data", [(StoredObject(f"s3://bkt/{number}", 10**17), f"{number}") for number in range(2)])
    assert server.asked == []
    assert list((tmp_path / "data").iterdir()) == []


def test_a_disk_that_fills_up_meanwhile_is_an_error(server, tmp_path):
    server.contents = {"x": b"x" * 3_000_000}
    code = (
        "import resource, signal, sys; from pathlib import Path; from scriptmode_local._data import staging\n"
        "from scriptmode_local._data.s3_store import S3Store\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000,) * 2)\n"
        "try: staging.fetch([(item, 'x') for item in S3Store().objects('s3://bkt/')], Path(sys.argv[1]), print)\n"
        "except staging.DataError as error: print(error)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "data"], stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    reason = os.strerror(errno.EFBIG)
    assert f"s3://bkt/x: it cannot be stored in '{tmp_path}/data': {reason}; set SCRIPTMODE_DATA_DIR" in told


def test_memory_stays_bounded_while_large_objects_are_downloaded(server, tmp_path):
    server.contents = {"x": random.Random(8).randbytes(PART) * 30}
    code = (
        "import sys; from pathlib import Path; from scriptmode_local._data import staging\n"
        "from scriptmode_local._data.s3_store import S3Store\n"
        "staging.fetch([(item, 'x') for item in S3Store().objects('s3://bkt/')], Path(sys.argv[1]), lambda *_: None)\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    run = subprocess.run([sys.executable, "-c", code, tmp_path / "data"], stdout=subprocess.PIPE, check=True)
    assert (tmp_path / "data/x").read_bytes() == server.contents["x"]
    assert int(run.stdout) < 72 * 1024
