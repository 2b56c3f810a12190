"""Files of this machine as objects: which are listed, in which order, and the errors of those that change."""

import os

import pytest
from fakes.host_folders import write_files

from scriptmode.errors import DataAccessError, DataError, DataNotFoundError
from scriptmode_local._data.file_store import FileStore


def names(folder):
    return [item.uri.partition(f"file://{folder}/")[2] for item in FileStore().objects(f"file://{folder}")]


def write(folder, *paths):
    write_files(folder, {path: path for path in paths})


def test_files_come_in_the_order_of_an_s3_listing(tmp_path):
    paths = ["a/x", "a-b", "a.txt", "a/b/c", "a0", "B", "é", "z", "a/b.c", "\U0001f600", "\uffee"]
    write(tmp_path, *paths)
    assert names(tmp_path) == sorted(paths, key=str.encode)


def test_a_file_is_the_only_object_of_its_uri(tmp_path):
    write(tmp_path, "a", "ab")
    (item,) = FileStore().objects(f"file://{tmp_path}/a")
    assert item == FileStore().find(f"file://{tmp_path}/a")
    assert (item.uri, item.size) == (f"file://{tmp_path}/a", 1)
    assert b"".join(FileStore().read(item, 0, 1)) == b"a"


def test_links_are_followed_but_neither_loops_nor_fifos(tmp_path):
    write(tmp_path, "data/a/1", "data/b/2", "elsewhere/3", "data/.scriptmode-new-x/half")
    os.mkfifo(tmp_path / "data/fifo")
    links = {"a/up": "data", "a/to-b": "data/b", "b/to-a": "data/a", "link": "elsewhere", "file": "elsewhere/3"}
    for name, target in links.items():
        (tmp_path / "data" / name).symlink_to(tmp_path / target)
    assert names(tmp_path / "data") == ["a/1", "a/to-b/2", "b/2", "b/to-a/1", "file", "link/3"]


def test_any_name_is_listed_found_and_read_as_it_is_written(tmp_path, hostile_name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / hostile_name).write_bytes(b"content")
    store = FileStore()
    (item,) = store.objects((tmp_path / "folder").as_uri())
    assert item.uri == f"file://{tmp_path}/folder/{hostile_name}"
    assert (store.find(item.uri), b"".join(store.read(item, 1, 4))) == (item, b"ont")


@pytest.mark.parametrize("ask", [lambda uri: list(FileStore().objects(uri)), lambda uri: FileStore().find(uri)])
def test_a_missing_file_is_an_error(tmp_path, ask):
    with pytest.raises(DataNotFoundError, match=rf"file://{tmp_path}/none: there is no such file; correct the URI"):
        ask(f"file://{tmp_path}/none")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(DataNotFoundError, match=r"the link leads to 'nowhere', which does not exist"):
        ask(f"file://{tmp_path}/link")
    with pytest.raises(DataError, match="has no absolute path"):
        ask("file://relative")
    with pytest.raises(DataNotFoundError, match="is a directory, not a file|the link leads to 'nowhere'"):
        ask(f"file://{tmp_path}")


def test_a_file_that_may_not_be_read_is_an_error(tmp_path):
    write(tmp_path, "secret")
    item = FileStore().find(f"file://{tmp_path}/secret")
    (tmp_path / "secret").chmod(0)
    if os.access(tmp_path / "secret", os.R_OK):
        return  # root reads everything
    with pytest.raises(DataAccessError, match="access denied"):
        FileStore().read(item, 0, 1)


def replace(path):
    path.with_name("new").write_bytes(b"content")
    path.with_name("new").replace(path)


CHANGES = {
    "longer": lambda path: path.write_bytes(b"longer than before"),
    "shorter": lambda path: path.write_bytes(b""),
    "as long": lambda path: (path.write_bytes(b"CONTENT"), os.utime(path, ns=(1, 1))),
    "replaced": replace,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_that_changed_is_an_error(tmp_path, change):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    item = FileStore().find(f"file://{path}")
    change(path)
    message = rf"file://{path}: the file (was changed|ended at byte \d) while the job read it"
    with pytest.raises(DataError, match=message):
        FileStore().read(item, 0, 7)


def test_a_file_that_was_deleted_or_became_a_fifo_is_an_error_without_waiting(tmp_path):
    write(tmp_path, "file")
    item = FileStore().find(f"file://{tmp_path}/file")
    (tmp_path / "file").unlink()
    message = rf"file://{tmp_path}/file: the file was deleted while the job read its channel"
    with pytest.raises(DataNotFoundError, match=message):
        FileStore().read(item, 0, 1)
    os.mkfifo(tmp_path / "file")
    with pytest.raises(DataError, match=rf"file://{tmp_path}/file: "):
        FileStore().read(item, 0, 1)
