"""Unpacking the source: whole, and nothing outside its folder."""

import errno
import io
import os
import tarfile
import zipfile

import pytest
from fakes import link_chains
from fakes.host_folders import HOSTILE_NAMES, pack, write_files

from scriptmode_runtime._files.archive import unpack
from scriptmode_runtime._values.errors import UserCodeError


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


OUT = "which leads out of its directory"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        pytest.param([member("a/../../evil")], "'a/../../evil', which leads out", id="parent in the middle"),
        pytest.param([member("/tmp/scriptmode-evil")], "evil', which leads out", id="absolute"),
        pytest.param([member("l", tarfile.SYMTYPE, "/etc")], f"'l', {OUT} .to '/etc'.*pack it again", id="absolute link"),
        pytest.param([member("h", tarfile.LNKTYPE, "../secret")], "'h', which leads out", id="hard link to above"),
        pytest.param([member("d", tarfile.CHRTYPE)], "'d', which is not a file, directory or link", id="device"),
        pytest.param(
            [member("x", tarfile.SYMTYPE, "."), member("x/l", tarfile.SYMTYPE, "x/../.."), member("l/evil")],
            "'x', a link with members below it", id="out through links",
        ),
        pytest.param(
            [member("d/e/l1", tarfile.SYMTYPE, "../.."), member("l2", tarfile.SYMTYPE, "d/e/l1/../x")],
            f"'l2', {OUT} .to 'd/e/l1/../x'.", id="a link out through a link",
        ),
        pytest.param(
            [member("d/a", tarfile.SYMTYPE, "sub/../.."), member("d/sub", tarfile.SYMTYPE, ".")],
            f"'d/a', {OUT} .to 'sub/../..'.", id="a link out through a later link",
        ),
        pytest.param(
            [member("d/e/l", tarfile.SYMTYPE, "../.."), member("h", tarfile.LNKTYPE, "d/e/l")],
            f"'h', {OUT} .to '../..'.", id="a hard link of a link that leads out from there",
        ),
        pytest.param([member("l", tarfile.SYMTYPE, "none/../../secret")], f"'l', {OUT}", id="a link out through nothing"),
        pytest.param([member("a\0b" * 60)], "embedded null byte", id="a name with a zero byte"),
    ],
)  # fmt: skip
def test_an_archive_that_leads_out_is_refused(tmp_path, members, message):
    (tmp_path / "secret").write_text("kept")
    with pytest.raises(UserCodeError, match=message):
        unpack(archive_of(tmp_path / "a.tar.gz", *members), str(tmp_path / "code"))
    assert not (tmp_path / "evil").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "code", "secret"]
    assert list((tmp_path / "code").iterdir()) == []


@pytest.mark.parametrize(
    "link",
    [
        pytest.param(member("q", tarfile.SYMTYPE, "d/e/p/../secret"), id="behind an existing link"),
        pytest.param(member("d/e/q", tarfile.SYMTYPE, "p/../secret"), id="beside an existing link"),
        pytest.param(member("q", tarfile.SYMTYPE, "absolute"), id="by an existing absolute link"),
        pytest.param(member("q", tarfile.LNKTYPE, "new"), id="a hard link of a link"),
    ],
)
def test_a_link_that_leads_out_through_what_is_in_the_folder_is_refused(tmp_path, link):
    write_files(tmp_path, {"secret": "kept", "code/d/e/f": "kept", "code/q": "kept", "code/here": "kept"})
    (tmp_path / "code/d/e/p").symlink_to("../..")
    (tmp_path / "code/absolute").symlink_to(tmp_path / "secret")
    before = sorted((tmp_path / "code").rglob("*"))
    members = [member("here"), member("d/e/f"), member("d/new"), link]
    if link[0].islnk():
        members.insert(0, member("new", tarfile.SYMTYPE, "d/e/p/../secret"))
    with pytest.raises(UserCodeError, match=r"holds '(d/e/q|q|new)', which leads out of its directory \(to '"):
        unpack(archive_of(tmp_path / "a.tar.gz", *members), str(tmp_path / "code"))
    assert sorted((tmp_path / "code").rglob("*")) == before
    assert {(tmp_path / "code" / name).read_text() for name in ("d/e/f", "q", "here")} == {"kept"}


def test_a_new_link_counts_and_not_the_one_that_it_replaces(tmp_path):
    (tmp_path / "code/d/e").mkdir(parents=True)
    (tmp_path / "code/p").symlink_to("d/e")
    members = [member("p", tarfile.SYMTYPE, "."), member("q", tarfile.SYMTYPE, "p/../secret")]
    with pytest.raises(UserCodeError, match="holds 'q', which leads out of its directory"):
        unpack(archive_of(tmp_path / "a.tar.gz", *members), str(tmp_path / "code"))
    assert (tmp_path / "code/p").readlink().name == "e"


@pytest.mark.parametrize(
    ("through", "message"),
    [
        ([link_chains.file("escape/victim")], "holds 'a', a link with members below it"),
        (
            [link_chains.hard_link("copy", "escape/victim"), link_chains.file("copy")],
            "holds 'copy' .a hard link to 'escape/victim'., which cannot be unpacked: No such file",
        ),
    ],
    ids=["a file behind it", "a hard link of one"],
)
def test_a_chain_of_links_longer_than_any_path_leads_nowhere(tmp_path, through, message):
    write_files(tmp_path / "others", {"victim": "kept"})
    archive = link_chains.write(tmp_path / "a.tar.gz", [*link_chains.out("others"), *through])
    with pytest.raises(UserCodeError, match=message):
        unpack(archive, str(tmp_path / "code"))
    assert {path.name: path.read_text() for path in (tmp_path / "others").iterdir()} == {"victim": "kept"}
    assert list((tmp_path / "code").iterdir()) == []


def test_links_inside_the_folder_are_kept(tmp_path):
    code = write_files(tmp_path / "code", {"d/e/f": "f", "g": "g"})
    (code / "d/p").symlink_to("e")
    links = {"q": "d/p/f", "d/r": "p/../../g", "d/n/s": "../p/f", "two.py": "lib/one.py", "none.py": "lib/none.py"}
    archive = archive_of(
        tmp_path / "a.tar.gz",
        member("lib/one.py", content=b"1"),
        *(member(name, tarfile.SYMTYPE, target) for name, target in links.items()),
        member("three.py", tarfile.LNKTYPE, "lib/one.py"),
        member("four.py", tarfile.LNKTYPE, "two.py"),
    )
    unpack(archive, str(code))
    assert [(code / name).read_text() for name in ("q", "d/r", "d/n/s")] == ["f", "g", "f"]
    assert {(code / f"{name}.py").read_text() for name in ("two", "three", "four")} == {"1"}
    assert (code / "none.py").readlink().name == "none.py"
    assert (code / "lib/one.py").stat().st_mode & 0o7777 == 0o755


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
    with pytest.raises(UserCodeError, match="holds 'lib', a directory, but '.*/code/lib' is a file or link; remove or"):
        unpack(archive_of(tmp_path / "a.tar.gz", member("lib/x")), str(tmp_path / "code"))
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (member("y/f"), "'y', a directory, but '.*/code/y' is a file or link"),
        (member("d"), "'d', a file or link, but '.*/code/d' is a directory"),
    ],
    ids=["a folder over a file", "a file over a folder"],
)
def test_nothing_is_replaced_where_a_folder_and_a_file_have_the_same_path(tmp_path, new, message):
    kept = dict.fromkeys(("a", "b", "c", "d/a", "d/e/g", "x", "y", "z"), "kept")
    code = write_files(tmp_path / "code", kept)
    members = [member(name) for name in ("a", "b", "c", "x", "z")]
    with pytest.raises(UserCodeError, match=f"^the model holds {message}; remove or rename one of them$"):
        unpack(archive_of(tmp_path / "a.tar.gz", *members, new), str(code), title="the model")
    assert {str(path.relative_to(code)): path.read_text() for path in code.rglob("*") if path.is_file()} == kept
    assert sorted(path.name for path in code.iterdir()) == ["a", "b", "c", "d", "x", "y", "z"]


def test_an_error_while_the_files_are_moved_names_the_file_and_the_next_step(tmp_path, monkeypatch):
    def replace(_source, target):
        raise PermissionError(errno.EACCES, "Permission denied", str(target))

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(UserCodeError, match="'.*/code/f' cannot be written: Permission .* make the directory wri") as e:
        unpack(archive_of(tmp_path / "a.tar.gz", member("f")), str(tmp_path / "code"))
    assert ".unpacking" not in str(e.value)


def test_a_later_folder_takes_the_place_of_a_link(tmp_path):
    folder = member("lib", tarfile.DIRTYPE)
    archive = archive_of(tmp_path / "a.tar.gz", member("lib", tarfile.SYMTYPE, "v1"), folder, member("lib/x"))
    unpack(archive, str(tmp_path / "code"))
    assert not (tmp_path / "code/lib").is_symlink()
    assert (tmp_path / "code/lib/x").read_text() == "x"


@pytest.mark.parametrize("name", HOSTILE_NAMES)
@pytest.mark.parametrize("packed", [True, False], ids=["archive", "folder"])
def test_a_source_of_any_name_comes_over_what_is_in_the_folder(tmp_path, name, packed):
    source = write_files(tmp_path / name, {f"{name}/{name}.py": name, "train.py": "new"})
    code = write_files(tmp_path / "code", {"old.py": "old", "train.py": "old"})
    unpack(str(pack(tmp_path / "a.tar.gz", source) if packed else source), str(code))
    assert (code / name / f"{name}.py").read_text() == name
    assert [(code / name).read_text() for name in ("old.py", "train.py")] == ["old", "new"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"not an archive", "not a complete tar archive"),
        (None, "cannot be unpacked"),
        (b"", "not a complete tar archive"),
    ],
    ids=["other bytes", "absent", "empty"],
)
def test_a_file_that_is_not_an_archive_is_named(tmp_path, content, message):
    if content is not None:
        (tmp_path / "a.tar.gz").write_bytes(content)
    with pytest.raises(UserCodeError, match=message):
        unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "code"))


@pytest.mark.prompt
def test_a_fifo_in_place_of_an_archive_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "a.tar.gz")
    with pytest.raises(UserCodeError, match="is not a regular file"):
        unpack(str(tmp_path / "a.tar.gz"), str(tmp_path / "code"))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([member("hl", tarfile.LNKTYPE, "none")], "'hl' .a hard link to 'none'., which cannot be unpacked: No "),
        ([member("d/f"), member("hl", tarfile.LNKTYPE, "d")], "'hl' .a hard link to 'd'., which .*: Is a directory"),
        ([member("f"), member("f/g")], "'f/g', which cannot be unpacked: File exists"),
        ([member("d/f"), member("d")], "'d', which cannot be unpacked: Is a directory"),
    ],
    ids=["hard link to nothing", "hard link to a folder", "below a file", "over a folder"],
)
def test_a_member_that_cannot_be_unpacked_is_named_with_the_next_step(tmp_path, members, message):
    with pytest.raises(UserCodeError, match=f"^the model holds {message}.*; pack it again") as caught:
        unpack(archive_of(tmp_path / "a.tar.gz", *members), str(tmp_path / "code"), title="the model")
    assert str(tmp_path / "code") not in str(caught.value)


@pytest.mark.parametrize("compression", ["", "gz", "bz2", "xz"])
def test_any_compression_is_known_by_its_bytes_and_never_taken_whole_when_it_is_broken(tmp_path, compression):
    path = tmp_path / "archive of no kind"
    with tarfile.open(path, f"w:{compression}") as archive:
        info, content = member("train.py", content=os.urandom(100_000))
        archive.addfile(info, io.BytesIO(content))
    whole = path.read_bytes()
    path.write_bytes(whole + b"more" * (compression == "gz"))  # what stands behind it is ignored, as tar does
    unpack(str(path), str(tmp_path / "code"))
    assert (tmp_path / "code/train.py").read_bytes() == content
    for broken in (whole[: len(whole) // 2], *([whole[:1000] + bytes(200) + whole[1200:]] if compression else [])):
        path.write_bytes(broken)
        with pytest.raises(UserCodeError, match="not a complete tar archive"):
            unpack(str(path), str(tmp_path / "broken"))
        assert list((tmp_path / "broken").iterdir()) == []


def test_a_zip_archive_is_refused_with_the_next_step(tmp_path):
    path = tmp_path / "source.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train.py", "print(1)")
    with pytest.raises(UserCodeError, match=r"source.zip is not a complete tar archive: .*; pack it with tar -czf"):
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


def test_a_name_with_invalid_utf_8_keeps_its_bytes_and_can_be_printed_where_it_is_refused(tmp_path):
    name = b"caf\xe9\nbreak.py"
    unpack(archive_of(tmp_path / "a.tar.gz", member(os.fsdecode(name))), str(tmp_path / "code"))
    assert [os.fsencode(path.name) for path in (tmp_path / "code").iterdir()] == [name]
    archive = archive_of(tmp_path / "b.tar.gz", member("../caf\udce9\n" + "x" * 5000))
    with pytest.raises(UserCodeError) as caught:
        unpack(archive, str(tmp_path / "code"))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value).encode()) < 1000


def test_a_folder_that_holds_the_code_folder_is_refused_and_a_folder_is_its_own_source(tmp_path):
    code = write_files(tmp_path / "ml" / "code", {"train.py": ""})
    with pytest.raises(UserCodeError, match="name a directory outside of it"):
        unpack(str(tmp_path / "ml"), str(code))
    unpack(str(code), f"{code}/")
    assert [path.name for path in code.iterdir()] == ["train.py"]
