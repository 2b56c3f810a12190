"""Unpacking the source: whole, and nothing outside its folder."""

import errno
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
    ("members", "said"),
    [
        pytest.param([member("../evil")], "'../evil', which leads out", id="parent"),
        pytest.param([member("a/../../evil")], "'a/../../evil', which leads out", id="parent in the middle"),
        pytest.param([member("/tmp/scriptmode-evil")], "evil', which leads out", id="absolute"),
        pytest.param([member("l", tarfile.SYMTYPE, "/etc")], "'l', which leads out", id="absolute link"),
        pytest.param([member("l", tarfile.SYMTYPE, "../..")], "'l', which leads out", id="link to above"),
        pytest.param([member("h", tarfile.LNKTYPE, "../secret")], "'h', which leads out", id="hard link to above"),
        pytest.param([member("d", tarfile.CHRTYPE)], "'d', which is not a file, directory or link", id="device"),
        pytest.param([member("f", tarfile.FIFOTYPE)], "'f', which is not a file, directory or link", id="pipe"),
        pytest.param(
            [member("x", tarfile.SYMTYPE, "."), member("x/l", tarfile.SYMTYPE, "x/../.."), member("l/evil")],
            "'x', a link with members below it",
            id="out through links",
        ),
        pytest.param(
            [member("d/e/l1", tarfile.SYMTYPE, "../.."), member("l2", tarfile.SYMTYPE, "d/e/l1/../x")],
            "'l2', which leads out of its directory .to 'd/e/l1/../x'.",
            id="a link out through a link",
        ),
        pytest.param(
            [member("d/a", tarfile.SYMTYPE, "sub/../.."), member("d/sub", tarfile.SYMTYPE, ".")],
            "'d/a', which leads out of its directory .to 'sub/../..'.",
            id="a link out through a later link",
        ),
        pytest.param(
            [member("d/e/l", tarfile.SYMTYPE, "../.."), member("h", tarfile.LNKTYPE, "d/e/l")],
            "'h', which leads out of its directory .to '../..'.",
            id="a hard link of a link that leads out from there",
        ),
        pytest.param(
            [member("l", tarfile.SYMTYPE, "none/../../secret")],
            "'l', which leads out of its directory",
            id="a link out through nothing",
        ),
        pytest.param(
            [member("f"), member("l", tarfile.SYMTYPE, "f/../../secret")],
            "'l', which leads out of its directory",
            id="a link out through a file",
        ),
        pytest.param([member("a\0b" * 60)], "embedded null byte", id="a name with a zero byte"),
    ],
)
def test_an_archive_that_leads_out_is_refused(tmp_path, members, said):
    (tmp_path / "secret").write_text("kept")
    with pytest.raises(UserCodeError, match=said):
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


def test_a_link_to_what_is_in_the_folder_is_kept(tmp_path):
    write_files(tmp_path / "code", {"d/e/f": "f", "g": "g"})
    (tmp_path / "code/d/p").symlink_to("e")
    links = {"q": "d/p/f", "d/r": "p/../../g", "d/n/s": "../p/f"}
    members = [member(name, tarfile.SYMTYPE, target) for name, target in links.items()]
    unpack(archive_of(tmp_path / "a.tar.gz", *members), str(tmp_path / "code"))
    assert [(tmp_path / "code" / name).read_text() for name in links] == ["f", "g", "f"]


def test_a_new_link_counts_and_not_the_one_that_it_replaces(tmp_path):
    (tmp_path / "code/d/e").mkdir(parents=True)
    (tmp_path / "code/p").symlink_to("d/e")
    members = [member("p", tarfile.SYMTYPE, "."), member("q", tarfile.SYMTYPE, "p/../secret")]
    with pytest.raises(UserCodeError, match="holds 'q', which leads out of its directory"):
        unpack(archive_of(tmp_path / "a.tar.gz", *members), str(tmp_path / "code"))
    assert (tmp_path / "code/p").readlink().name == "e"


def test_an_archive_is_called_what_the_caller_calls_it(tmp_path):
    archive = archive_of(tmp_path / "a.tar.gz", member("../evil"))
    with pytest.raises(UserCodeError, match="^the model s3://b/m holds '../evil', which leads out of its directory"):
        unpack(archive, str(tmp_path / "code"), title="the model s3://b/m")


BELOW_A_LINK = "holds 'a', a link with members below it"


@pytest.mark.parametrize(
    ("through", "said"),
    [
        pytest.param([link_chains.file("escape/victim")], BELOW_A_LINK, id="a file behind it"),
        pytest.param(
            [link_chains.hard_link("copy", "escape/victim"), link_chains.file("copy")],
            "holds 'copy' .a hard link to 'escape/victim'., which cannot be unpacked: No such file",
            id="a hard link of one",
        ),
        pytest.param([link_chains.folder("escape/new")], BELOW_A_LINK, id="a folder behind it"),
        pytest.param([link_chains.link("again", "escape/victim")], BELOW_A_LINK, id="a link through it"),
        pytest.param([], BELOW_A_LINK, id="the link itself"),
    ],
)
def test_a_chain_of_links_longer_than_any_path_leads_nowhere(tmp_path, through, said):
    place_of_others = tmp_path / "others"
    place_of_others.mkdir()
    (place_of_others / "victim").write_text("kept")
    archive = link_chains.write(tmp_path / "a.tar.gz", [*link_chains.out("others"), *through])
    with pytest.raises(UserCodeError, match=said):
        unpack(archive, str(tmp_path / "code"))
    assert {path.name: path.read_text() for path in place_of_others.iterdir()} == {"victim": "kept"}
    assert list((tmp_path / "code").iterdir()) == []


def test_a_chain_of_links_in_real_folders_is_kept_while_it_stays_inside(tmp_path):
    steps = link_chains.STEPS[:12]
    deepest = "/".join([link_chains.LONG] * len(steps))
    members = [
        *link_chains.out("")[: 2 * len(steps)],
        link_chains.link(f"{deepest}/up", "../" * len(steps)),
        link_chains.link("again", "/".join(steps) + "/up/here"),
        link_chains.file("here", b"x"),
    ]
    out = link_chains.link("escape", "/".join(steps) + "/up/../others")
    with pytest.raises(UserCodeError, match="holds 'escape', which leads out of its directory"):
        unpack(link_chains.write(tmp_path / "a.tar.gz", [*members, out]), str(tmp_path / "code"))
    assert list((tmp_path / "code").iterdir()) == []
    unpack(link_chains.write(tmp_path / "b.tar.gz", members), str(tmp_path / "code"))
    assert (tmp_path / "code/again").read_text() == "x"


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
    with pytest.raises(UserCodeError, match="holds 'lib', a directory, but '.*/code/lib' is a file or link; remove or"):
        unpack(archive_of(tmp_path / "a.tar.gz", member("lib/x")), str(tmp_path / "code"))
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize(
    ("new", "said"),
    [
        pytest.param(member("y/f"), "'y', a directory, but '.*/code/y' is a file or link", id="a folder over a file"),
        pytest.param(member("d"), "'d', a file or link, but '.*/code/d' is a directory", id="a file over a folder"),
        pytest.param(
            member("d/e", tarfile.SYMTYPE, "f"),
            "'d/e', a file or link, but '.*/d/e' is a directory",
            id="a link over one",
        ),
    ],
)
def test_nothing_is_replaced_where_a_folder_and_a_file_have_the_same_path(tmp_path, new, said):
    kept = dict.fromkeys(("a", "b", "c", "d/a", "d/e/g", "x", "y", "z"), "kept")
    code = write_files(tmp_path / "code", kept)
    members = [member(name) for name in ("a", "b", "c", "x", "z")]
    with pytest.raises(UserCodeError, match=f"^the model holds {said}; remove or rename one of them$"):
        unpack(archive_of(tmp_path / "a.tar.gz", *members, new), str(code), title="the model")
    assert {str(path.relative_to(code)): path.read_text() for path in code.rglob("*") if path.is_file()} == kept
    assert sorted(path.name for path in code.iterdir()) == ["a", "b", "c", "d", "x", "y", "z"]


def test_an_error_while_the_files_are_moved_names_the_file_and_the_next_step(tmp_path, monkeypatch):
    def replace(_source, target):
        raise PermissionError(errno.EACCES, "Permission denied", str(target))

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(
        UserCodeError, match="'.*/code/f' cannot be written: Permission .* make the directory writable"
    ) as e:
        unpack(archive_of(tmp_path / "a.tar.gz", member("f")), str(tmp_path / "code"))
    assert ".unpacking" not in str(e.value)


def test_a_later_folder_takes_the_place_of_a_link(tmp_path):
    folder = member("lib", tarfile.DIRTYPE)
    archive = archive_of(tmp_path / "a.tar.gz", member("lib", tarfile.SYMTYPE, "v1"), folder, member("lib/x"))
    unpack(archive, str(tmp_path / "code"))
    assert not (tmp_path / "code/lib").is_symlink()
    assert (tmp_path / "code/lib/x").read_text() == "x"


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
        (
            [member("link", tarfile.SYMTYPE, "/outside")],
            "holds 'link', which leads out of its directory .to '/outside'.",
        ),
        ([member("d/up", tarfile.SYMTYPE, "../../x")], "holds 'd/up', which leads out of its directory .to '../../x'."),
        ([member("hl", tarfile.LNKTYPE, "../x")], "holds 'hl', which leads out of its directory .to '../x'."),
        ([member("hl", tarfile.LNKTYPE, "none")], "holds 'hl' .a hard link to 'none'., which cannot be unpacked: No "),
        (
            [member("d/f"), member("hl", tarfile.LNKTYPE, "d")],
            "holds 'hl' .a hard link to 'd'., which .*: Is a directory",
        ),
        ([member("f"), member("f/g")], "holds 'f/g', which cannot be unpacked: File exists"),
        ([member("d/f"), member("d")], "holds 'd', which cannot be unpacked: Is a directory"),
        ([member("a", tarfile.SYMTYPE, "b"), member("a/f")], "holds 'a', a link with members below it"),
    ],
    ids=[
        "absolute",
        "upwards",
        "hard link out",
        "hard link to nothing",
        "hard link to a folder",
        "below a file",
        "over a folder",
        "below",
    ],
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
    with pytest.raises(UserCodeError, match="name a directory outside of it"):
        unpack(str(tmp_path / "ml"), str(tmp_path / "ml" / "code"))


def test_a_folder_is_its_own_source(tmp_path):
    code = write_files(tmp_path / "code", {"train.py": ""})
    unpack(str(code), f"{code}/")
    assert [path.name for path in code.iterdir()] == ["train.py"]
