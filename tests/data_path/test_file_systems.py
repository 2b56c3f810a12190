"""EFS and FSx channels are folders of this machine that the user names."""

from pathlib import Path

import pytest

from scriptmode.errors import DataError, SpecError
from scriptmode.platforms.local.system import file_systems
from scriptmode.platforms.local.system.file_systems import FILE_SYSTEMS_VARIABLE
from scriptmode.request.parse import parse_request
from scriptmode.spec.inputs import FileSystemInput

ID = "fs-0123456789abcdef0"


def source(path="/", mode="rw", name=ID):
    return FileSystemInput(name, "EFS", path, mode)


VARIABLES = {
    "": {},
    "fs-1=/mnt/data": {"fs-1": "/mnt/data"},
    "fs-1=/mnt/data,fs-9=/x": {"fs-1": "/mnt/data", "fs-9": "/x"},
    "fs-1=/mnt/data,fs-9=/x,": {"fs-1": "/mnt/data", "fs-9": "/x,"},
    "fs-1=/a,b=c,d,fs-9=/e=f": {"fs-1": "/a,b=c,d", "fs-9": "/e=f"},
    "fs-1=/with space/ü\n": {"fs-1": "/with space/ü"},
    '{"fs-1": "/a,fs-2=/b", "fs-9": "/x"}': {"fs-1": "/a,fs-2=/b", "fs-9": "/x"},
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
        (None, "fs-1", f"{FILE_SYSTEMS_VARIABLE}: 'fs-1' is not of the form fs-0123=/folder"),
        (
            None,
            "fs-1=/a,fs-2",
            f"{FILE_SYSTEMS_VARIABLE}: the directory of 'fs-1' is '/a,fs-2'; the part 'fs-2' names no directory",
        ),
        (None, "fs-1=data", f"{FILE_SYSTEMS_VARIABLE}: 'fs-1' is 'data'; give the absolute path of a directory"),
        (None, "efs=/data", f"{FILE_SYSTEMS_VARIABLE}: 'efs' is not the ID of a file system"),
        (None, "{'fs-1'", f"{FILE_SYSTEMS_VARIABLE} is not a JSON object: "),
        (None, '{"fs-1": 5}', f"{FILE_SYSTEMS_VARIABLE}: 'fs-1' is 5; give the absolute path"),
        ({"fs-1": "~/data"}, "", "file_systems['fs-1'] is '~/data'; give the absolute path"),
        ({5: "/data"}, "", "file_systems[5] is not the ID of a file system"),
        ({"fs-1": None}, "", "file_systems['fs-1'] is None"),
        ({"fs-1": ""}, "", "file_systems['fs-1'] is ''"),
        ("fs-1=/x", "", "file_systems is 'fs-1=/x'; give a dict of ids to directories"),
    ],
)
def test_an_invalid_entry_is_an_error_that_names_it(given, text, said):
    with pytest.raises(SpecError) as caught:
        file_systems.parse_file_systems(given, {FILE_SYSTEMS_VARIABLE: text})
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("path", ["/", "/below/deeper", "/below/deeper/", "//below//deeper"])
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


@pytest.mark.parametrize("path", ["/..", "/a/../../etc", "/a/.."])
def test_a_directory_path_does_not_lead_upwards(tmp_path, path):
    with pytest.raises(DataError, match="contains '..'"):
        file_systems.find_folder(source(path), {ID: str(tmp_path)})


def test_a_channel_that_may_be_written_is_a_link(tmp_path):
    data, place = tmp_path / "data", tmp_path / "host" / "train"
    data.mkdir()
    place.mkdir(parents=True)
    assert file_systems.provide_folder(source(), {ID: str(data)}, place) == ""
    (place / "new").write_text("x")
    assert (data / "new").read_text() == "x"
    assert not file_systems.is_read_only(source())


def test_an_existing_path_is_left_unchanged(tmp_path):
    place = tmp_path / "train"
    place.mkdir()
    (place / "kept").touch()
    with pytest.raises(DataError, match=f"file system '{ID}': the link '.*train' cannot be created"):
        file_systems.provide_folder(source(), {ID: str(tmp_path)}, place)
    assert (place / "kept").exists()


@pytest.mark.parametrize("mode", [{"FileSystemAccessMode": "ro"}, {}])
def test_the_service_mounts_read_only_by_default(mode):
    asked = {"FileSystemId": ID, "FileSystemType": "EFS", "DirectoryPath": "/", **mode}
    channel = {"ChannelName": "train", "DataSource": {"FileSystemDataSource": asked}}
    job = parse_request({"TrainingJobName": "job", "InputDataConfig": [channel]})
    assert file_systems.is_read_only(job.channels[0].source)
