import io
import os
import tarfile
import time

import pytest
from fakes import link_chains

from scriptmode import SourceError
from scriptmode._core.machine.data_dir import make_private
from scriptmode._core.source.source_archive import read_source, script_name
from scriptmode._core.spec.training_job import Script
from scriptmode_runtime._files.archive import unpack


def names(archive):
    with tarfile.open(fileobj=io.BytesIO(archive.data)) as tar:
        return tar.getnames()


@pytest.fixture
def code(tmp_path):
    folder = tmp_path / "code"
    (folder / "sub").mkdir(parents=True)
    (folder / "train.py").write_text("print(1)")
    (folder / "sub" / "helper.py").write_text("x = 1")
    return folder


def packed_names(code):
    return names(read_source(Script("train.py", str(code))))


def test_the_archive_depends_on_the_contents_alone(code):
    first = read_source(Script("train.py", str(code)))
    (code / "train.py").touch()
    os.utime(code / "sub" / "helper.py", (1, time.time() - 1000))
    assert read_source(Script("train.py", str(code))) == first
    (code / "train.py").write_text("print(2)")
    assert read_source(Script("train.py", str(code))).digest != first.digest


def test_an_executable_file_stays_executable_and_owners_are_not_recorded(code):
    (code / "run.sh").write_text("#!/bin/sh\n")
    (code / "run.sh").chmod(0o700)
    with tarfile.open(fileobj=io.BytesIO(read_source(Script("run.sh", str(code))).data)) as tar:
        members = {member.name: member for member in tar}
    assert members["run.sh"].mode == 0o755
    assert members["train.py"].mode == 0o644
    assert {(m.uid, m.gid, m.uname, m.mtime) for m in members.values()} == {(0, 0, "", 0)}


def test_version_control_caches_and_virtual_environments_stay_out(code):
    for folder in (".git", "__pycache__", "env", ".ipynb_checkpoints", "sub/__pycache__"):
        (code / folder).mkdir()
        (code / folder / "file").write_text("")
    (code / "env" / "pyvenv.cfg").write_text("")
    make_private(code / "data" / "fetched" / "model", code / "data")
    (code / "old.pyc").write_text("")
    assert packed_names(code) == ["sub/helper.py", "train.py"]
    make_private(code / "fetched" / "model", code)
    with pytest.raises(SourceError, match="is also the data directory"):
        packed_names(code)


@pytest.mark.parametrize(
    ("patterns", "packed"),
    [
        ("# data\n*.csv\n/sub/\n!keep.csv\n", ["keep.csv", "train.py"]),
        ("*.csv\nlogs/\n", ["sub/helper.py", "train.py"]),
    ],
    ids=["as Git reads it", "an empty directory"],
)
def test_the_ignore_file_leaves_out(code, patterns, packed):
    (code / "big.csv").write_text("")
    (code / "keep.csv").write_text("")
    (code / "logs").mkdir()
    (code / "data").symlink_to("/mnt/nowhere")
    (code / ".scriptmodeignore").write_text(f"{patterns}/data\nlogs/\n")
    assert packed_names(code) == packed


def test_one_file_is_packed_alone(code, monkeypatch):
    monkeypatch.chdir(code)
    script = Script("sub/helper.py")
    assert names(read_source(script)) == ["helper.py"]
    assert script_name(script) == "helper.py"


def test_dependencies_lie_beside_the_script(code, tmp_path):
    library = tmp_path / "library"
    (library / "inner").mkdir(parents=True)
    (library / "inner" / "a.py").write_text("")
    (tmp_path / "single.py").write_text("")
    archive = read_source(Script("train.py", str(code), (str(library), str(tmp_path / "single.py"))))
    assert names(archive) == ["library/inner/a.py", "single.py", "sub/helper.py", "train.py"]


@pytest.mark.parametrize(
    ("entry", "folder", "message"),
    [
        pytest.param(
            "trian.py", "code", "'trian.py' is not in source_dir 'code'; did you mean 'train.py'?", id="misspelt script"
        ),
        pytest.param("train.py", "cod", "source_dir 'cod' does not exist (looked in", id="misspelt folder"),
        pytest.param("train.py", "cod", "); did you mean 'code'?", id="a similar folder is suggested"),
        pytest.param("train.py", "code/train.py", "is not a directory", id="a file as folder"),
        pytest.param("{code}/train.py", "code", "name it within source_dir: 'train.py'", id="a whole path"),
        pytest.param("{code}/..later/train.py", "code", "name it within source_dir: '..later/train.py'", id="dots"),
        pytest.param("../secret.py", "code", "is outside source_dir", id="outside"),
        pytest.param("nowhere.py", None, "entry_point 'nowhere.py' does not exist", id="no such file"),
        pytest.param("code", None, "is not a regular file", id="a folder as script"),
    ],
)
def test_missing_files_are_named(code, monkeypatch, entry, folder, message):
    monkeypatch.chdir(code.parent)
    (code.parent / "secret.py").write_text("")
    (code.parent / "x").mkdir()
    with pytest.raises(SourceError) as caught:
        read_source(Script(entry.format(code=code), folder))
    assert message in str(caught.value)


ABOVE = "symbolic link .*/{}' points to '{}', a directory that the link .*in"


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        ("link", "/etc/passwd", "symbolic link"), ("link", "missing", "symbolic link"), ("sub/loop", "..", ABOVE),
        ("again", "sub/up", ABOVE), ("one", "two", "{}' points to '{}', a circle of links; remove the link"),
    ],
)  # fmt: skip
def test_a_link_out_of_the_tree_or_in_a_circle_is_refused(code, name, target, message):
    (code / "sub" / "up").symlink_to("..")
    (code / "two").symlink_to("one")
    (code / ".scriptmodeignore").write_text("sub/up\n/two\n")
    (code / name).symlink_to(target)
    with pytest.raises(SourceError, match=message.format(name, target)):
        packed_names(code)


def test_a_chain_of_links_longer_than_any_path_takes_nothing_from_outside(code):
    (code.parent / "secret").write_text("of somebody else")
    (code / ".scriptmodeignore").write_text("chained/\n")
    (code / "chained").mkdir()
    chain = link_chains.write_folder(code / "chained", 1)
    # Where a resolver gives up at the chain's last link, this one is found.
    (code / "chained" / chain).with_name("secret").write_text("decoy")
    (code / "stolen").symlink_to(f"chained/{chain}/../secret")
    assert (code / "stolen").read_text() == "of somebody else"
    with pytest.raises(SourceError, match="symbolic link .*stolen' leaves the source directory"):
        read_source(Script("train.py", str(code)))


def test_folders_in_each_other_without_end_are_refused(code):
    deep = code
    for _ in range(201):
        deep /= "d"
        deep.mkdir()
    (deep / "file").touch()
    with pytest.raises(SourceError, match="more than 200 directories in each other"):
        read_source(Script("train.py", str(code)))


def test_an_entry_that_is_not_a_file_is_left_out_with_a_warning(code):
    os.mkfifo(code / "sub" / "pipe")
    with pytest.warns(UserWarning, match="sub/pipe' is neither a file nor a directory .*not packed; name it in"):
        assert packed_names(code) == ["sub/helper.py", "train.py"]
    (code / ".scriptmodeignore").write_text("pipe\n")
    assert packed_names(code) == ["sub/helper.py", "train.py"]


@pytest.mark.prompt
def test_a_fifo_is_neither_an_entry_point_nor_a_dependency(code):
    os.mkfifo(code / "pipe")
    with pytest.raises(SourceError, match="entry_point .*pipe' is not a regular file"):
        read_source(Script(str(code / "pipe")))
    with pytest.raises(SourceError, match="dependency .*pipe' is not a regular file"):
        read_source(Script(str(code / "train.py"), dependencies=(str(code / "pipe"),)))


KEY = "-----BEGIN RSA PRIVATE KEY-----\n"
NAMES_OF_SECRETS = (".env", "secrets.py", "public.pem", "sub/credentials.json", "client_secret.json", "kubeconfig")


@pytest.mark.parametrize(("name", "text"), [*((name, "x") for name in NAMES_OF_SECRETS), ("sub/mine.txt", KEY)])
def test_files_that_look_like_secrets_are_warned_of_and_private_keys_refused(code, name, text):
    (code / name).write_text(text)
    if text == KEY:
        with pytest.raises(SourceError, match=f"has private keys: {name!r}; name in .scriptmodeignore what"):
            read_source(Script("train.py", str(code)))
    else:
        with pytest.warns(UserWarning, match=f"has files that look like secrets and are packed: {name!r}; name in"):
            assert name in packed_names(code)
    (code / ".scriptmodeignore").write_text(f"/{name}\n")
    assert name not in packed_names(code)
    (code / ".scriptmodeignore").write_text(f"!/{name}\n")
    assert name in packed_names(code)


def test_a_folder_with_nothing_to_pack_in_it_is_there_for_the_script_to_write_to(code, tmp_path):
    for folder in ("logs", "outputs/figures", "seen/__pycache__", "library/empty"):
        (code / folder).mkdir(parents=True)
    (code / "seen" / "__pycache__" / "x.pyc").write_text("")
    (tmp_path / "other" / "empty").mkdir(parents=True)
    script = Script("train.py", str(code), (str(tmp_path / "other"),))
    first = read_source(script)
    assert len(first.files) == 2
    with tarfile.open(fileobj=io.BytesIO(first.data)) as tar:
        folders = {member.name: (member.mode, member.uid, member.mtime) for member in tar if member.isdir()}
    names_of_folders = ["library/empty", "logs", "other/empty", "outputs/figures", "seen"]
    assert folders == dict.fromkeys(names_of_folders, (0o755, 0, 0))
    os.utime(code / "logs", (1, 1))
    assert read_source(script) == first
    archive = tmp_path / "sourcedir.tar.gz"
    archive.write_bytes(first.data)
    (tmp_path / "unpacked").mkdir()
    unpack(str(archive), str(tmp_path / "unpacked"))
    for folder in names_of_folders:
        (tmp_path / "unpacked" / folder / "written").touch()
