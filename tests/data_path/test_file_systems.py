"""EFS and FSx channels are folders of this machine: what the user names, mounted read-only; without root a link."""

import errno
import os
import stat
import subprocess
from pathlib import Path

import pytest
from fakes import plain_user

from scriptmode._core.machine.data_dir import FILE_SYSTEMS_VARIABLE
from scriptmode._core.request.parse import parse_request
from scriptmode._core.spec.inputs import FileSystemInput
from scriptmode.errors import DataError, SpecError
from scriptmode_local._data import mounts
from scriptmode_local._system import file_systems

ID = "fs-0123456789abcdef0"


def source(path="/", mode="rw"):
    return FileSystemInput(ID, "EFS", path, mode)


VARIABLES = {
    "": {},
    "fs-1=/mnt/data,fs-9=/x,": {"fs-1": "/mnt/data", "fs-9": "/x,"},
    "fs-1=/a,b=c,d,fs-9=/e=f": {"fs-1": "/a,b=c,d", "fs-9": "/e=f"},
    "fs-1=/with space/ü\n": {"fs-1": "/with space/ü"},
}


@pytest.mark.parametrize(("text", "expected"), VARIABLES.items(), ids=VARIABLES)
def test_the_variable_names_a_folder_for_each_file_system(text, expected):
    assert file_systems.parse_file_systems(None, {FILE_SYSTEMS_VARIABLE: text}) == expected


def test_an_argument_takes_precedence_over_the_variable():
    environ = {FILE_SYSTEMS_VARIABLE: "fs-1=/one,fs-2=/two"}
    assert file_systems.parse_file_systems({"fs-1": Path("/other")}, environ) == {"fs-1": "/other", "fs-2": "/two"}
    assert file_systems.parse_file_systems({"fs-1": "/other"}, {}) == {"fs-1": "/other"}


@pytest.mark.parametrize(
    ("given", "text", "said"),
    [
        (None, "fs-1", "{}: 'fs-1' is not of the form fs-0123=/folder"),
        (None, "fs-1=data", "{}: 'fs-1' is 'data'; give the absolute path of a directory"),
        (None, "efs=/data", "{}: 'efs' is not the ID of a file system"),
        ({"fs-1": "~/data"}, "", "file_systems['fs-1'] is '~/data'; give the absolute path"),
        ({5: "/data"}, "", "file_systems[5] is not the ID of a file system"),
        ({"fs-1": None}, "", "file_systems['fs-1'] is None"),
        ("fs-1=/x", "", "file_systems is 'fs-1=/x'; give a dict of ids to directories"),
    ],
)
def test_an_invalid_entry_is_an_error_that_names_it(given, text, said):
    with pytest.raises(SpecError) as caught:
        file_systems.parse_file_systems(given, {FILE_SYSTEMS_VARIABLE: text})
    assert str(caught.value).startswith(said.format(FILE_SYSTEMS_VARIABLE))


@pytest.mark.parametrize("path", ["/", "/below/deeper", "//below//deeper/"])
def test_a_directory_path_is_below_the_folder(tmp_path, path):
    (tmp_path / "below" / "deeper").mkdir(parents=True)
    found = file_systems.find_folder(source(path), {ID: str(tmp_path)})
    assert found == tmp_path / path.strip("/").replace("//", "/")


def test_an_unknown_file_system_says_how_to_name_its_folder():
    with pytest.raises(DataError) as caught:
        file_systems.find_folder(source(), {"fs-9": "/x"})
    assert str(caught.value) == (
        f"file system {ID!r} has no directory on this machine (known: fs-9); name one with "
        f"LocalPlatform(file_systems={{{ID!r}: '/folder'}}) or {FILE_SYSTEMS_VARIABLE}={ID}=/folder"
    )


def test_the_error_of_a_missing_directory_names_the_id(tmp_path):
    folders = {ID: str(tmp_path / "gone")}
    with pytest.raises(DataError, match=f"^file system '{ID}': its directory '.*gone' does not exist on this machine"):
        file_systems.find_folder(source(), folders)
    (tmp_path / "file").touch()
    for path in ("/gone", "/file"):
        with pytest.raises(DataError, match=f"^file system '{ID}': DirectoryPath '{path}' is '.*{path}' on this"):
            file_systems.find_folder(source(path), {ID: str(tmp_path)})


@pytest.mark.parametrize("path", ["/..", "/a/.."])
def test_a_directory_path_does_not_lead_upwards(tmp_path, path):
    with pytest.raises(DataError, match="contains '..'"):
        file_systems.find_folder(source(path), {ID: str(tmp_path)})


def test_a_channel_that_may_be_written_is_a_link(tmp_path):
    data, channel = tmp_path / "data", tmp_path / "host" / "train"
    data.mkdir()
    channel.mkdir(parents=True)
    assert file_systems.provide_folder(source(), {ID: str(data)}, channel) == ""
    (channel / "new").write_text("x")
    assert (data / "new").read_text() == "x"


def test_an_existing_path_is_left_unchanged(tmp_path):
    channel = tmp_path / "train"
    channel.mkdir()
    (channel / "kept").touch()
    with pytest.raises(DataError, match=f"file system '{ID}': the link '.*train' cannot be created"):
        file_systems.provide_folder(source(), {ID: str(tmp_path)}, channel)
    assert (channel / "kept").exists()


#: A request without FileSystemAccessMode: the service mounts read-only by default.
REQUEST = {"FileSystemId": ID, "FileSystemType": "EFS", "DirectoryPath": "/"}
CHANNEL = {"ChannelName": "train", "DataSource": {"FileSystemDataSource": REQUEST}}
READ_ONLY = parse_request({"TrainingJobName": "job", "InputDataConfig": [CHANNEL]}).channels[0].source
PROVIDE = f"""
import sys
from pathlib import Path
from scriptmode_local._system import file_systems
from scriptmode._core.spec.inputs import FileSystemInput
data, mount_point = map(Path, sys.argv[1:])
print(file_systems.provide_folder({READ_ONLY!r}, {{{ID!r}: str(data)}}, mount_point))
(mount_point / "new").write_text("mine")
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
def mount_point(data, tmp_path):
    mount_point = tmp_path / "hosts" / "train"
    assert file_systems.provide_folder(READ_ONLY, {ID: str(data)}, mount_point) == ""
    yield mount_point
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
    for change in changes:
        with pytest.raises(OSError) as caught:
            change()
        assert caught.value.errno == errno.EROFS


@pytest.mark.root
def test_nothing_can_be_changed_and_a_mount_in_use_is_unmounted_at_once(mount_point, data, tmp_path):
    before = everything(data)
    assert everything(mount_point) == before
    assert len(before) == 5
    refused(
        lambda: (mount_point / "file").write_bytes(b"x"),
        (mount_point / "below" / "new").touch,
        (mount_point / "file").unlink,
        lambda: (mount_point / "below").rename(mount_point / "other"),
        lambda: (mount_point / "file").chmod(0o777),
        (mount_point / "new").mkdir,
    )
    assert everything(data) == before
    (data / "new").write_text("new")
    assert (mount_point / "new").read_text() == "new"
    with (mount_point / "file").open() as file:
        mounts.detach(tmp_path)
        assert list(mount_point.iterdir()) == []
        assert file.read() == "content"


@pytest.mark.root
def test_a_file_system_below_the_folder_is_read_only_too_and_stays_mounted(tmp_path, data):
    below, mount_point = data / "below", tmp_path / "hosts" / "train"
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", below], check=True)
    try:
        # As systemd mounts them: an unmount of one copy is one of all.
        subprocess.run(["mount", "--make-rshared", below], check=True)
        (below / "inner").write_text("inner")
        assert file_systems.provide_folder(READ_ONLY, {ID: str(data)}, mount_point) == ""
        assert (mount_point / "below" / "inner").read_text() == "inner"
        refused((mount_point / "below" / "inner").unlink)
        mounts.detach(tmp_path)
        assert list(mount_point.iterdir()) == []
        assert (below / "inner").read_text() == "inner"
    finally:
        subprocess.run(["umount", "--lazy", below], check=True)


def test_for_a_user_without_rights_it_is_a_link_with_a_warning():
    with plain_user.folder_of_the_user() as home:
        data = home / "data"
        data.mkdir()
        os.chown(data, plain_user.UID, -1)
        printed = plain_user.run(PROVIDE, str(data), str(home / "hosts" / "train"), home=home)
        assert printed.startswith(
            f"warning: channel 'train' is file system {ID!r}, read-only, but nothing keeps the script from writing to "
            f"it: mounting {str(data)!r} read-only was refused: Operation not permitted; run the job as root"
        )
        assert (data / "new").read_text() == "mine"
        assert (home / "hosts" / "train").readlink() == data
