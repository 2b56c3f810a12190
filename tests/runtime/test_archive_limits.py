"""Archives that unpack to more than they should: refused before the disk is full, and nothing of them is left."""

import gzip
import io
import tarfile

import pytest
from fakes.host_folders import write_files

from scriptmode_runtime._files import archive as archives
from scriptmode_runtime._files.archive import MODEL_LIMITS, Limits, source_limits, unpack
from scriptmode_runtime._values.errors import ConfigurationError, UserCodeError

MB = 10**6


def regular(name, content=b"x", **attributes):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in attributes.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


def claiming(name, size):
    """A header that claims a size, without the content."""
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


def sparse(name, size):
    """A sparse file of which one block is there."""
    info = tarfile.TarInfo(name)
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 512
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"%011o\0%011o\0" % (0, 512)
    header[483:495] = b"\x80" + size.to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + bytes(512)


def archive(path, *pieces, end=bytes(1024)):
    path.write_bytes(gzip.compress(b"".join(pieces) + end))
    return str(path)


def refused(source, folder, said, **limits):
    with pytest.raises(UserCodeError) as caught:
        unpack(source, str(folder), limits=Limits(**limits))
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"the source {source} ")
    assert len(str(caught.value)) < 1000
    return str(caught.value)


@pytest.fixture
def code(tmp_path):
    return write_files(tmp_path / "code", {"here.py": "kept", "lib/here.py": "kept"})


def left(code):
    return {path.relative_to(code).as_posix(): path.read_text() for path in code.rglob("*") if path.is_file()}


KEPT = {"here.py": "kept", "lib/here.py": "kept"}


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([regular("zeros", bytes(20 * MB))], id="one file"),
        pytest.param([regular(f"lib/new/f{n}", bytes(MB)) for n in range(20)], id="in a new folder of an old one"),
        pytest.param([regular("ok"), claiming("zeros", 10**15)], id="one that is not there"),
        pytest.param([regular("ok"), sparse("holes", 10**15)], id="one full of holes"),
        pytest.param([regular("ok"), claiming("zeros", 2**80)], id="one larger than any file"),
    ],
)
def test_more_than_the_limit_is_refused_and_nothing_of_it_is_left(tmp_path, code, pieces):
    source = archive(tmp_path / "bomb.tar.gz", *pieces)
    message = refused(source, code, "unpacks to more than 10.0 MB", size=10 * MB)
    assert "raise SCRIPTMODE_SOURCE_LIMIT_GB" in message
    assert left(code) == KEPT
    assert sorted(path.name for path in code.iterdir()) == ["here.py", "lib"]


def test_more_than_the_disk_has_is_refused_without_any_limit(tmp_path, code):
    source = archive(tmp_path / "bomb.tar.gz", regular("ok"), claiming("zeros", 10**15))
    message = refused(source, code, "unpacks to at least 1,000,000.0 GB")
    assert f"and {code} has space for " in message
    assert left(code) == KEPT


def test_more_members_than_the_limit_are_refused_folders_too(tmp_path, code):
    assert MODEL_LIMITS.members == source_limits({}).members == 1_000_000
    folder = tarfile.TarInfo("folder")
    folder.type = tarfile.DIRTYPE
    source = archive(tmp_path / "model.tar.gz", folder.tobuf(tarfile.USTAR_FORMAT) * 49, regular("one more"))
    with pytest.raises(UserCodeError) as caught:
        unpack(source, str(code), title="the model", limits=MODEL_LIMITS._replace(members=49))
    assert "the model holds more than 49 files, directories and links; download the archive" in str(caught.value)
    assert sorted(path.name for path in code.iterdir()) == ["here.py", "lib"]
    source = archive(tmp_path / "bomb.tar.gz", *(regular(f"{n}.py") for n in range(50)))
    refused(source, code, "holds more than 49 files", members=49)
    assert left(code) == KEPT
    unpack(source, str(code), limits=Limits(members=50, size=50))
    assert len(left(code)) == 52


@pytest.mark.slow
@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
def test_a_name_of_many_megabytes_is_refused_before_it_is_in_memory(tmp_path, code, kind):
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, 50 * MB
    source = archive(tmp_path / "bomb.tar.gz", header.tobuf(tarfile.GNU_FORMAT), bytes(50 * MB), regular("a"))
    refused(source, code, "a header of more than")


def test_names_of_names_without_end_are_refused(tmp_path, code):
    longname = tarfile.TarInfo("x")
    longname.type, longname.size = tarfile.GNUTYPE_LONGNAME, 5
    piece = longname.tobuf(tarfile.GNU_FORMAT) + b"a.py\0" + bytes(507)
    refused(archive(tmp_path / "bomb.tar.gz", piece * 9000, regular("a")), code, "not a complete tar archive")


def test_a_negative_size_does_not_go_round_in_circles(tmp_path, code):
    header = bytearray(claiming("a", 0))
    header[124:136] = (256**12 - 512).to_bytes(12, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    source = archive(tmp_path / "a.tar.gz", regular("ok"), bytes(header), bytes(header))
    refused(source, code, "not a complete tar archive")
    assert left(code) == KEPT


def test_an_archive_that_is_broken_in_the_middle_is_not_taken_for_its_first_half(tmp_path, code):
    source = archive(tmp_path / "a.tar.gz", regular("a.py"), b"\xff" * 512, regular("b.py"))
    refused(source, code, "the header at 1,024 is broken")
    assert left(code) == KEPT


def links(count, to):
    for number in range(count):
        info = tarfile.TarInfo(f"l{number}")
        info.type, info.linkname = tarfile.SYMTYPE, to(number)
        yield info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_the_memory_for_links_is_limited(tmp_path, code, monkeypatch, kind):
    monkeypatch.setattr(archives, "_MOST_LINK_TEXT", 5_000)
    info = tarfile.TarInfo("l0")
    info.type, info.linkname = kind, "x" * 6_000
    source = archive(tmp_path / "a.tar.gz", *links(9, lambda _: "here"), info.tobuf(tarfile.GNU_FORMAT))
    refused(source, code, "holds links with 5.0 kB of names; pack it without them")
    assert left(code) == KEPT


def test_a_way_of_a_billion_links_ends(tmp_path, code):
    twice = links(30, lambda number: f"l{number - 1}/l{number - 1}" if number else ".")
    source = archive(tmp_path / "a.tar.gz", *twice, regular("/".join(f"l{n}" for n in range(30))))
    refused(source, code, "holds 'l0', a link with members below it")
    assert left(code) == KEPT


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_chain_of_links_that_cannot_be_followed_is_harmless(tmp_path, code):
    unpack(archive(tmp_path / "a.tar.gz", *links(2_000, lambda number: f"l{number + 1}")), str(code))
    assert left(code) == KEPT
    assert (code / "l0").is_symlink()


def test_folders_without_bottom_are_refused(tmp_path, code):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo("a/" * 201 + "x"))
    refused(archive(tmp_path / "a.tar.gz", buffer.getvalue(), end=b""), code, "more than 200 directories deep")


@pytest.mark.parametrize("text", ["0", "much", "nan", "inf"])
def test_the_jobs_limit_of_a_source_is_a_number_of_gb_above_zero(text):
    sizes = {given: source_limits({"SCRIPTMODE_SOURCE_LIMIT_GB": given}).size for given in ("", "0.5")}
    assert sizes == {"": 30 * 10**9, "0.5": 5 * 10**8}
    with pytest.raises(ConfigurationError, match="SCRIPTMODE_SOURCE_LIMIT_GB='.*' is not a number of GB above 0"):
        source_limits({"SCRIPTMODE_SOURCE_LIMIT_GB": text})
