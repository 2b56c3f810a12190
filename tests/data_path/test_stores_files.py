"""Files of this machine as objects: which are listed, in which order, and the errors of those that change."""

import os

import pytest

from scriptmode.data.file_store import FileStore
from scriptmode.data.s3_store import S3Store
from scriptmode.data.stores import Stores
from scriptmode.errors import DataAccessError, DataError, DataNotFoundError


def names(folder):
    return [item.uri.partition(f"file://{folder}/")[2] for item in FileStore().objects(f"file://{folder}")]


def write(folder, *paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(path)


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


def test_links_are_followed_and_loops_are_not(tmp_path):
    write(tmp_path, "data/a/1", "data/b/2", "elsewhere/3")
    (tmp_path / "data/a/up").symlink_to(tmp_path / "data")
    (tmp_path / "data/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data/file").symlink_to(tmp_path / "elsewhere/3")
    assert names(tmp_path / "data") == ["a/1", "b/2", "file", "link/3"]


def test_a_folder_that_two_names_lead_to_is_listed_by_both(tmp_path):
    write(tmp_path, "x2024/f", "y/g")
    (tmp_path / "latest").symlink_to("x2024")
    (tmp_path / "y/again").symlink_to(tmp_path / "x2024")
    assert names(tmp_path) == ["latest/f", "x2024/f", "y/again/f", "y/g"]


def test_directories_that_link_to_each_other_do_not_recurse(tmp_path):
    write(tmp_path, "a/1", "b/2")
    (tmp_path / "a/to-b").symlink_to(tmp_path / "b")
    (tmp_path / "b/to-a").symlink_to(tmp_path / "a")
    assert names(tmp_path) == ["a/1", "a/to-b/2", "b/2", "b/to-a/1"]


def test_entries_that_are_not_files_are_skipped(tmp_path):
    write(tmp_path, "a")
    os.mkfifo(tmp_path / "fifo")
    assert names(tmp_path) == ["a"]


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


def test_a_link_to_nowhere_in_a_directory_is_an_error(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(DataNotFoundError, match=rf"file://{tmp_path}/link: the link leads to 'nowhere'"):
        names(tmp_path)


def test_a_directory_is_not_an_object(tmp_path):
    with pytest.raises(DataNotFoundError, match="is a directory, not a file"):
        FileStore().find(f"file://{tmp_path}")


def test_a_file_that_may_not_be_read_is_an_error(tmp_path):
    write(tmp_path, "secret")
    item = FileStore().find(f"file://{tmp_path}/secret")
    (tmp_path / "secret").chmod(0)
    if os.access(tmp_path / "secret", os.R_OK):
        return  # root reads everything
    with pytest.raises(DataAccessError, match="access denied"):
        FileStore().read(item, 0, 1)


def grow(path):
    path.write_bytes(b"longer than before")


def shrink(path):
    path.write_bytes(b"")


def rewrite(path):
    path.write_bytes(b"CONTENT")
    os.utime(path, ns=(1, 1))


def replace(path):
    path.with_name("new").write_bytes(b"content")
    path.with_name("new").replace(path)


@pytest.mark.parametrize("change", [grow, shrink, rewrite, replace])
def test_a_file_that_changed_is_an_error(tmp_path, change):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    item = FileStore().find(f"file://{path}")
    change(path)
    with pytest.raises(
        DataError, match=rf"file://{path}: the file (was changed|ended at byte \d) while the job read it"
    ):
        FileStore().read(item, 0, 7)


def test_a_file_that_was_deleted_is_an_error(tmp_path):
    write(tmp_path, "file")
    item = FileStore().find(f"file://{tmp_path}/file")
    (tmp_path / "file").unlink()
    with pytest.raises(
        DataNotFoundError, match=rf"file://{tmp_path}/file: the file was deleted while the job read its channel"
    ):
        FileStore().read(item, 0, 1)


def test_a_fifo_instead_of_a_file_is_an_error_without_waiting(tmp_path):
    write(tmp_path, "file")
    item = FileStore().find(f"file://{tmp_path}/file")
    (tmp_path / "file").unlink()
    os.mkfifo(tmp_path / "file")
    with pytest.raises(DataError, match=rf"file://{tmp_path}/file: "):
        FileStore().read(item, 0, 1)


def test_each_scheme_has_its_store():
    stores = Stores()
    assert isinstance(stores.store_of("file:///x"), FileStore)
    assert isinstance(stores.store_of("s3://b/x"), S3Store)
    assert stores.store_of("s3://b/x") is stores.store_of("s3://c/y")
