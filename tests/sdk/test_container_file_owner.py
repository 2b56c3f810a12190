"""What containers wrote is made its owner's, and nothing else."""

import os
import time
from pathlib import Path

import pytest
from fakes.processes import until

from scriptmode.platforms.local.hosts.job_containers import WrittenFolder, folder_inodes, restore_owner
from scriptmode_runtime.files import beneath

OWNER = (4321, 4321)
#: Who wrote it in a container.
OTHER = 1234
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root changes owners; test_container_owner has the other"
)


def owned(path, uid=OTHER):
    os.chown(path, uid, uid, follow_symlinks=False)
    return path


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "hosts"
    (folder / "theirs").mkdir(parents=True)
    (folder / "theirs" / "of root").touch()
    (folder / "file").touch()
    owned(folder, OWNER[0])
    owned(folder / "theirs")
    owned(folder / "file")
    return folder


def uids(folder):
    return {path.relative_to(folder).as_posix(): path.lstat().st_uid for path in folder.rglob("*")}


def test_all_below_a_folder_of_another_user_is_given_back(folder):
    restore_owner([WrittenFolder(folder, OWNER)], "image", "job")
    assert set(uids(folder).values()) == {OWNER[0]}


def test_what_links_lead_to_stays_whose_it_is(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    owned(folder / "link")
    (folder / "theirs" / "link").symlink_to(tmp_path / "elsewhere" / "file")
    restore_owner([WrittenFolder(folder, OWNER)], "image", "job")
    assert {path.lstat().st_uid for path in (tmp_path / "elsewhere", tmp_path / "elsewhere" / "file")} == {0}
    assert (folder / "theirs" / "link").lstat().st_uid == OWNER[0]


def test_of_a_shared_folder_only_what_is_new_is_given_back(tmp_path):
    shared = tmp_path / "shared"
    (shared / "before").mkdir(parents=True)
    owned(shared / "before", 77)
    (shared / "before" / "old").touch()
    owned(shared / "before" / "old", 77)
    known = folder_inodes(shared)
    assert known == {path.stat().st_ino for path in (shared, shared / "before")}
    # Times of change have the kernel's ticks.
    since = time.time()
    until(lambda: _is_later(tmp_path, since))
    (shared / "before" / "new").touch()
    (shared / "new").mkdir()
    (shared / "new" / "file").touch()
    for path in (shared / "before" / "new", shared / "new"):
        owned(path)
    restore_owner([WrittenFolder(shared, OWNER, since, known)], "image", "job")
    assert uids(shared) == {
        "before": 77, "before/old": 77, "before/new": OWNER[0], "new": OWNER[0], "new/file": OWNER[0],
    }  # fmt: skip


def _is_later(folder, since):
    probe = Path(folder, "probe")
    probe.touch()
    return probe.stat().st_ctime > since


@pytest.mark.slow
def test_thousands_of_folders_in_each_other_are_given_back(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("below", dir_fd=descriptor)
        os.chown("below", OTHER, OTHER, dir_fd=descriptor)
        below = os.open("below", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    restore_owner([WrittenFolder(folder, OWNER)], "image", "job")
    with beneath.Directory(folder) as directory:
        assert {entry.status.st_uid for entry in directory.walk()} == {OWNER[0]}
    beneath.remove_tree(folder)
