"""A read-only file system is a mount of its folder that can be read and not changed; without root it is a link."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import plain_user

from scriptmode.data import mounts
from scriptmode.platforms.local.system import file_systems
from scriptmode.spec.inputs import FileSystemInput

ID = "fs-0123456789abcdef0"
SOURCE = FileSystemInput(ID, "EFS", "/")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a folder")
PROVIDE = f"""
import sys
from pathlib import Path
from scriptmode.platforms.local.system import file_systems
from scriptmode.spec.inputs import FileSystemInput
data, place = map(Path, sys.argv[1:])
print(file_systems.provide_folder({SOURCE!r}, {{{ID!r}: str(data)}}, place))
(place / "new").write_text("mine")
"""


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "file system"
    (folder / "below").mkdir(parents=True)
    (folder / "file").write_bytes(b"content")
    (folder / "below" / "odd\n'\"\\ ü🎉").write_text("odd")
    (folder / "link").symlink_to("file")
    os.mkfifo(folder / "fifo")
    return folder


@pytest.fixture
def place(data, tmp_path):
    place = tmp_path / "hosts" / "train"
    assert file_systems.provide_folder(SOURCE, {ID: str(data)}, place) == ""
    yield place
    mounts.detach(tmp_path)


def everything(folder):
    """Return what lstat, read and readlink say of all that is below a folder."""
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        target = str(path.readlink()) if path.is_symlink() else ""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_ino, status.st_mtime_ns, content, target)
    return found


def refused(*changes):
    """Assert that each change fails with EROFS."""
    for change in changes:
        with pytest.raises(OSError) as caught:
            change()
        assert caught.value.errno == errno.EROFS


@needs_root
def test_nothing_can_be_changed(place, data):
    before = everything(data)
    assert everything(place) == before
    assert len(before) == 5
    refused(
        lambda: (place / "file").write_bytes(b"x"),
        (place / "below" / "new").touch,
        (place / "file").unlink,
        lambda: (place / "below").rename(place / "other"),
        lambda: (place / "file").chmod(0o777),
        (place / "new").mkdir,
    )
    assert everything(data) == before


@needs_root
def test_changes_of_the_folder_are_visible(place, data):
    (data / "new").write_text("new")
    (data / "file").unlink()
    assert (place / "new").read_text() == "new"
    assert not (place / "file").exists()


@needs_root
def test_a_file_system_below_the_folder_is_read_only_too_and_stays_mounted(tmp_path, data):
    below, place = data / "below", tmp_path / "hosts" / "train"
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", below], check=True)
    try:
        # As systemd mounts them: an unmount of one copy is one of all.
        subprocess.run(["mount", "--make-rshared", below], check=True)
        (below / "inner").write_text("inner")
        assert file_systems.provide_folder(SOURCE, {ID: str(data)}, place) == ""
        assert (place / "below" / "inner").read_text() == "inner"
        refused((place / "below" / "inner").unlink)
        mounts.detach(tmp_path)
        assert list(place.iterdir()) == []
        assert (below / "inner").read_text() == "inner"
    finally:
        subprocess.run(["umount", "--lazy", below], check=True)


@needs_root
def test_a_mount_in_use_is_unmounted_at_once(place, data, tmp_path):
    with (place / "file").open() as file:
        mounts.detach(tmp_path)
        assert list(place.iterdir()) == []
        assert file.read() == "content"
    place.rmdir()
    assert (data / "file").read_text() == "content"


def assert_link_with_a_warning(printed, data):
    assert printed.startswith(
        f"warning: channel 'train' is file system {ID!r}, read-only, but nothing keeps the script from writing to it: "
        f"mounting {str(data)!r} read-only was refused: Operation not permitted; run the job as root"
    )
    assert (data / "new").read_text() == "mine"


def test_for_a_user_without_rights_it_is_a_link_with_a_warning():
    with plain_user.folder_of_the_user() as home:
        data = home / "data"
        data.mkdir()
        os.chown(data, plain_user.UID, -1)
        printed = plain_user.run(PROVIDE, str(data), str(home / "hosts" / "train"), home=home)
        assert_link_with_a_warning(printed, data)
        assert (home / "hosts" / "train").readlink() == data


@needs_root
def test_for_root_without_the_right_to_mount_it_is_a_link_with_a_warning(data, tmp_path):
    place = tmp_path / "hosts" / "train"
    without = ("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", "--")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*without, sys.executable, "-c", PROVIDE, data, place],
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert_link_with_a_warning(done.stdout, data)
    assert place.readlink() == Path(data)
