"""A directory below a read-only mount can be read and not changed."""

import errno
import os
import random
import shutil
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fakes.processes import until

from scriptmode.data.folder_tree import FolderTree
from scriptmode.errors import DataError
from scriptmode.platforms.local.system import file_systems

ID = "fs-0123456789abcdef0"


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "file system"
    (folder / "below" / "deeper").mkdir(parents=True)
    (folder / "file").write_bytes(b"content")
    (folder / "below" / "large").write_bytes(random.Random(5).randbytes(5_000_001))
    (folder / "below" / "odd\n'\"\\ ü🎉").write_text("odd")
    (folder / "link").symlink_to("below/large")
    (folder / "broken").symlink_to("nowhere")
    os.mkfifo(folder / "fifo")
    return folder


@pytest.fixture
def place(data, views, tmp_path):
    place = tmp_path / "train"
    asked = {"FileSystemId": ID, "DirectoryPath": "/", "FileSystemAccessMode": "ro"}
    views.mount(file_systems.tree_factory(asked, {ID: str(data)}), place)
    return place


def everything(folder):
    """What stat, read and readlink say of all that is below a folder."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(root, name)
            status = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            target = str(path.readlink()) if path.is_symlink() else ""
            found[str(path.relative_to(folder))] = (
                *(status.st_mode, status.st_uid, status.st_gid, status.st_mtime_ns, status.st_nlink),
                *(status.st_size, content, target),
            )
    return found


def test_a_mount_shows_the_directory_unchanged(place, data):
    assert everything(place) == everything(data)
    assert len(everything(data)) == 8
    subprocess.run(["diff", "-r", "--no-dereference", data / "below", place / "below"], check=True)


def test_nothing_can_be_changed(place, data):
    before = everything(data)
    for change in (
        lambda: (place / "file").write_bytes(b"x"),
        (place / "below" / "new").touch,
        (place / "file").unlink,
        lambda: (place / "below").rename(place / "other"),
        lambda: (place / "file").chmod(0o777),
        (place / "new").mkdir,
    ):
        with pytest.raises(OSError) as caught:
            change()
        assert caught.value.errno == errno.EROFS
    assert everything(data) == before


def test_changes_of_the_directory_are_visible(place, data):
    assert (place / "file").read_bytes() == b"content"
    assert not (place / "new").exists()
    (data / "new").write_bytes(b"new")
    (data / "file").write_bytes(b"something longer")
    (data / "below" / "large").unlink()
    until(lambda: (place / "new").exists() and not (place / "below" / "large").exists())
    until(lambda: (place / "file").read_bytes() == b"something longer")
    assert {path.name for path in place.iterdir()} == {path.name for path in data.iterdir()}


def test_a_directory_that_is_replaced_under_a_reader_is_found_again(place, data):
    assert (place / "below" / "large").stat().st_size == 5_000_001
    shutil.rmtree(data / "below")
    (data / "below").write_text("a file now")
    until((place / "below").is_file)
    assert (place / "below").read_text() == "a file now"


def test_threads_read_parts_of_one_file_that_may_be_deleted(place, data):
    content = (data / "below" / "large").read_bytes()
    descriptor = os.open(place / "below" / "large", os.O_RDONLY)
    os.pread(descriptor, 1, 0)
    (data / "below" / "large").unlink()
    try:
        with ThreadPoolExecutor(8) as pool:
            found = pool.map(lambda at: os.pread(descriptor, 70_001, at), range(0, len(content), 70_001))
            assert b"".join(found) == content
    finally:
        os.close(descriptor)


def test_files_that_are_not_in_use_are_not_kept_open(views, data, tmp_path):
    view = views.mount(lambda: FolderTree(data), tmp_path / "other")

    def descriptors():
        return len(list(Path(f"/proc/{view.pid}/fd").iterdir()))

    before = descriptors()
    for _ in range(20):
        assert (tmp_path / "other" / "file").read_bytes() == b"content"
    until(lambda: descriptors() == before)


def test_a_mount_never_hangs_on_a_pipe(place):
    assert stat.S_ISFIFO((place / "fifo").stat().st_mode)
    with pytest.raises(OSError) as caught:
        os.open(place / "fifo", os.O_WRONLY | os.O_NONBLOCK)
    assert caught.value.errno in (errno.EROFS, errno.ENXIO)


def test_a_path_that_is_not_a_directory_is_the_reason_for_a_missing_mount(data):
    with pytest.raises(DataError, match="is no folder"):
        FolderTree(data / "file")


def test_directories_that_are_listed_repeatedly_are_stored_once(place, data):
    for _ in range(3):
        everything(place)
    # The folder itself, and what is below it.
    assert os.statvfs(place).f_files <= 1 + len(everything(data))


def test_every_error_of_reading_a_file_is_replied(data):
    tree, answers = FolderTree(data), []
    number = tree.lookup(1, b"file").number
    tree.open(number).read(2**70, 1, answers.append)
    until(lambda: answers)
    assert isinstance(answers[0], OverflowError)
