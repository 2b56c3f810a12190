"""Unpacking the source: whole, and nothing outside its folder."""

import io
import os
import tarfile
import zipfile

import pytest
from fakes import link_chains
from fakes.host_folders import HOSTILE_NAMES, pack, write_files

from scriptmode_runtime.errors import UserCodeError
from scriptmode_runtime.files.archive import unpack


def member(name, kind=tarfile.REGTYPE, link="", content=b"x"):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, 0o4755
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    return info, content


def archive_of(path, *members):
    with tarfile.open(path, "w:gz") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return str(path)


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([member("../evil")], id="parent"),
        pytest.param([member("a/../../evil")], id="parent in the middle"),
        pytest.param([member("/tmp/scriptmode-evil")], id="absolute"),
        pytest.param([member("l", tarfile.SYMTYPE, "/etc")], id="absolute link"),
        pytest.param([member("l", tarfile.SYMTYPE, "../..")], id="link to above"),
        pytest.param([member("h", tarfile.LNKTYPE, "../secret")], id="hard link to above"),
        pytest.param([member("d", tarfile.CHRTYPE)], id="device"),
        pytest.param([member("f", tarfile.FIFOTYPE)], id="pipe"),
        pytest.param(
            [member("x", tarfile.SYMTYPE, "."), member("x/l", tarfile.SYMTYPE, "x/../.."), member("l/evil")],
            id="out through links",
        ),
        pytest.param(
            [member("d/e/l1", tarfile.SYMTYPE, "../.."), member("l2", tarfile.SYMTYPE, "d/e/l1/../x")],
            id="a link out through a link",
        ),
        pytest.param(
            [member("d/a", tarfile.SYMTYPE, "sub/../.."), member("d/sub", tarfile.SYMTYPE, ".")],
            id="a link out through a later link",
        ),
        pytest.param(
            [member("d/e/l", tarfile.SYMTYPE, "../.."), member("h", tarfile.LNKTYPE, "d/e/l")],
            id="a hard link of a link that leads out from there",
        ),
        pytest.param([member("a\0b" * 60)], id="a name with a zero byte"),
    ],
)
def test_an_archive_that_leads_out_is_refused(tmp_path, members):
    (tmp_path / "secret").write_text("kept")
    with pytest.raises(UserCodeError):
        unpack(archive_of(tmp_path / "a.tar.gz", *members), str(tmp_path / "code"))
    assert not (tmp_path / "evil").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "code", "secret"]


def test_an_archive_is_called_what_the_caller_calls_it(tmp_path):
    archive = archive_of(tmp_path / "a.tar.gz", member("../evil"))
    with pytest.raises(UserCodeError, match="^the model s3://b/m holds '../evil', which leads out of its folder"):
        unpack(archive, str(tmp_path / "code"), title="the model s3://b/m")


@pytest.mark.parametrize(
    "through",
    [
        pytest.param([link_chains.file("escape/victim")], id="a file behind it"),
        pytest.param(
            [link_chains.hard_link("copy", "escape/victim"), link_chains.file("copy")], id="a hard link of one"
        ),
        pytest.param([link_chains.folder("escape/new")], id="a folder behind it"),
        pytest.param([link_chains.link("again", "escape/victim")], id="a link through it"),
        pytest.param([], id="the link itself"),
    ],
)
def test_a_chain_of_links_longer_than_any_path_leads_nowhere(tmp_path, through):
    place_of_others = tmp_path / "others"
    place_of_others.mkdir()
    (place_of_others / "victim").write_text("kept")
    archive = link_chains.write(tmp_path / "a.tar.gz", [*link_chains.out("others"), *through])
    with pytest.raises(UserCodeError):
        unpack(archive, str(tmp_path / "code"))
    assert {path.name: path.read_text() for path in place_of_others.iterdir()} == {"victim": "kept"}
    assert list((tmp_path / "code").iterdir()) == []


def test_links_inside_the_folder_are_kept(tmp_path):
    archive = archive_of(
        tmp_path / "a.tar.gz",
        member("lib/one.py", content=b"1"),
        member("two.py", tarfile.SYMTYPE, "lib/one.py"),
        member("three.py", tarfile.LNKTYPE, "lib/one.py"),
        member("four.py", tarfile.LNKTYPE, "two.py"),
        member("none.py", tarfile.SYMTYPE, "lib/none.py"),
    )
    unpack(archive, str(tmp_path / "code"))
    assert {(tmp_path / f"code/{name}.py").read_text() for name in ("two", "three", "four")} == {"1"}
    assert (tmp_path / "code/none.py").readlink().name == "none.py"
    assert (tmp_path / "code/lib/one.py").stat().st_mode & 0o7777 == 0o755


def test_a_file_replaces_a_link_and_is_not_written_through_it(tmp_path):
    (tmp_path / "outside").write_text("kept")
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").symlink_to(tmp_path / "outside")
    unpack(archive_of(tmp_path / "a.tar.gz", member("train.py", content=b"new")), str(tmp_path / "code"))
    assert (tmp_path / "outside").read_text() == "kept"
    assert (tmp_path / "code/train.py").read_text() == "new"


def test_a_folder_is_not_moved_through_a_link(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "code").mkdir()
    (tmp_path / "code/lib").symlink_to(tmp_path / "outside")
    with pytest.raises(UserCodeError, match="cannot be unpacked into"):
        unpack(archive_of(tmp_path / "a.tar.gz", member("lib/x")), str(tmp_path / "code"))
    assert list((tmp_path / "outside").iterdir()) == []


def test_the_source_comes_over_what_is_in_the_folder(tmp_path):
    code = write_files(tmp_path / "code", {"old.py": "old", "train.py": "old"})
    unpack(str(pack(tmp_path / "a.tar.gz", write_files(tmp_path / "s", {"train.py": "new"}))), str(code))
    assert {path.name: path.read_text() for path in code.iterdir()} == {"old.py": "old", "train.py": "new"}


@pytest.mark.parametrize("name", HOSTILE_NAMES)
@pytest.mark.parametrize("packed", [True, False], ids=["archive", "folder"])
def test_any_name_survives(tmp_path, name, packed):
    source = write_files(tmp_path / name, {f"{name}/{name}.py": name})
    unpack(str(pack(tmp_path / "a.tar.gz", source) if packed else source), str(tmp_path / "code"))
    assert (tmp_path / "code" / name / f"{name}.py").read_text() == name


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"not an archive", "not a complete tar archive"),
        (None, "cannot be unpacked"),
        (b"", "not a complete tar archive"),
    ],
    ids=["other bytes", "absent", "empty"],
)
def test_a_file_that_is_not_an_archive_is_named(tmp_path, content, said):
    path = tmp_path / "a.tar.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserCodeError, match=said):
        unpack(str(path), str(tmp_path / "code"))


@pytest.mark.prompt
def test_a_fifo_in_place_of_an_archive_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "a.tar.gz")
    with pytest.raises(UserCodeError, match="is not a regular file"):
        unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "code"))


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([member("link", tarfile.SYMTYPE, "/outside")], "holds 'link', which leads out of its folder .to '/outside'."),
        ([member("d/up", tarfile.SYMTYPE, "../../x")], "holds 'd/up', which leads out of its folder .to '../../x'."),
        ([member("hl", tarfile.LNKTYPE, "../x")], "holds 'hl', which leads out of its folder .to '../x'."),
        ([member("hl", tarfile.LNKTYPE, "none")], "holds 'hl' .a hard link to 'none'., which cannot be unpacked: No "),
        ([member("f"), member("f/g")], "holds 'f/g', which cannot be unpacked: File exists"),
        ([member("d/f"), member("d")], "holds 'd', which cannot be unpacked: Is a directory"),
        ([member("a", tarfile.SYMTYPE, "b"), member("a/f")], "holds 'a', a link with members below it"),
    ],
    ids=["absolute", "upwards", "hard link out", "hard link to nothing", "below a file", "over a folder", "below"],
)
def test_a_member_that_cannot_be_unpacked_is_named_with_the_next_step(tmp_path, members, said):
    with pytest.raises(UserCodeError, match=f"^the model {said}.*; pack it again") as caught:
        unpack(archive_of(tmp_path / "a.tar.gz", *members), str(tmp_path / "code"), title="the model")
    assert str(tmp_path / "code") not in str(caught.value)


def test_half_an_archive_is_named(tmp_path):
    whole = pack(tmp_path / "whole.tar.gz", write_files(tmp_path / "s", {"a.py": "".join(map(str, range(9999)))}))
    half = tmp_path / "half.tar.gz"
    half.write_bytes(whole.read_bytes()[:2000])
    with pytest.raises(UserCodeError, match="not a complete tar archive"):
        unpack(str(half), str(tmp_path / "code"))


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_any_compression_is_known_by_its_bytes(tmp_path, compression):
    path = tmp_path / "archive of no kind"
    with tarfile.open(path, f"w:{compression}") as archive:
        info, content = member("train.py", content=b"whole" * 100_000)
        archive.addfile(info, io.BytesIO(content))
    unpack(str(path), str(tmp_path / "code"))
    assert (tmp_path / "code/train.py").read_bytes() == content
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserCodeError, match="not a complete tar archive"):
        unpack(str(path), str(tmp_path / "half"))
    assert list((tmp_path / "half").iterdir()) == []


@pytest.mark.parametrize("compression", ["gz", "bz2", "xz"])
def test_broken_compression_is_a_broken_archive(tmp_path, compression):
    path = tmp_path / "a.tar"
    with tarfile.open(path, f"w:{compression}") as archive:
        info, content = member("train.py", content=os.urandom(100_000))
        archive.addfile(info, io.BytesIO(content))
    broken = bytearray(path.read_bytes())
    broken[1000:1200] = bytes(200)
    path.write_bytes(broken)
    with pytest.raises(UserCodeError, match="not a complete tar archive"):
        unpack(str(path), str(tmp_path / "code"))
    assert list((tmp_path / "code").iterdir()) == []


def test_what_stands_behind_a_compressed_archive_is_ignored_as_tar_does(tmp_path):
    path = archive_of(tmp_path / "a.tar.gz", member("train.py"))
    with (tmp_path / "a.tar.gz").open("ab") as file:
        file.write(b"more")
    unpack(path, str(tmp_path / "code"))
    assert (tmp_path / "code/train.py").exists()


def test_a_zip_archive_is_called_one_and_the_next_step_named(tmp_path):
    path = tmp_path / "source.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train.py", "print(1)")
    with pytest.raises(UserCodeError, match=r"source.zip is a zip archive; pack it as a gzip-compressed tar: tar -czf"):
        unpack(str(path), str(tmp_path / "code"))


@pytest.mark.parametrize("mode", [0, 0o200, 0o7777], ids=["none", "write only", "all with setuid, setgid and sticky"])
def test_modes_never_keep_the_owner_out_nor_give_more_than_a_file_may_have(tmp_path, mode):
    folder, file = tarfile.TarInfo("d"), tarfile.TarInfo("d/train.py")
    folder.type, folder.mode = tarfile.DIRTYPE, mode
    file.mode, file.uid, file.gid = mode, 12345, 12345
    for _ in range(2):
        unpack(archive_of(tmp_path / "a.tar.gz", (folder, b""), (file, b"")), str(tmp_path / "code"))
    status = (tmp_path / "code/d/train.py").stat()
    assert status.st_mode & 0o7600 == 0o600
    assert status.st_uid == os.getuid()
    assert (tmp_path / "code/d").stat().st_mode & 0o7700 == 0o700


def test_a_name_with_broken_utf_8_keeps_its_bytes(tmp_path):
    name = b"caf\xe9\nbreak.py"
    unpack(archive_of(tmp_path / "a.tar.gz", member(os.fsdecode(name))), str(tmp_path / "code"))
    assert [os.fsencode(path.name) for path in (tmp_path / "code").iterdir()] == [name]


def test_a_refused_name_with_invalid_utf_8_can_be_printed(tmp_path):
    archive = archive_of(tmp_path / "a.tar.gz", member("../caf\udce9\n" + "x" * 5000))
    with pytest.raises(UserCodeError) as caught:
        unpack(archive, str(tmp_path / "code"))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value).encode()) < 1000


def test_a_folder_that_holds_the_code_folder_is_refused(tmp_path):
    write_files(tmp_path / "ml", {"train.py": ""})
    with pytest.raises(UserCodeError, match="name a folder outside of it"):
        unpack(str(tmp_path / "ml"), str(tmp_path / "ml" / "code"))


def test_a_folder_is_its_own_source(tmp_path):
    code = write_files(tmp_path / "code", {"train.py": ""})
    unpack(str(code), f"{code}/")
    assert [path.name for path in code.iterdir()] == ["train.py"]
