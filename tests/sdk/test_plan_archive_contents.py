"""What a plan makes of source archives that cannot be read."""

import bz2
import gzip
import io
import lzma
import tarfile

import pytest

from scriptmode import DataError, Estimator
from scriptmode.planning import archive_contents
from scriptmode.platforms.local import LocalPlatform


def packed():
    """An archive that no compression makes smaller."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        member = tarfile.TarInfo("train.py")
        member.size = 100_000
        tar.addfile(member, io.BytesIO(bytes(number * number % 251 for number in range(100_000))))
    return file.getvalue()


@pytest.mark.parametrize(
    "compress", [gzip.compress, bz2.compress, lzma.compress, bytes], ids=lambda each: each.__module__
)
def test_an_archive_that_is_whole_is_read_and_one_that_is_not_is_an_error(compress):
    whole = compress(packed())
    assert archive_contents.read_archive(whole).sizes == {"train.py": 100_000}
    for start in (12, len(whole) // 2):
        broken = whole[:start] + b"\xff" * 64 + whole[start + 64 :]
        for part in (broken, whole[: len(whole) // 2], whole[:20], b""):
            if compress is not bytes or part is not broken:
                with pytest.raises(DataError, match="it is not a source archive: "):
                    archive_contents.read_archive(part)


def test_a_broken_archive_is_a_note_of_the_plan(tmp_path):
    archive = tmp_path / "sourcedir.tar.gz"
    archive.write_bytes(gzip.compress(packed())[:10] + b"\xff" * 500)
    platform = LocalPlatform(data_dir=tmp_path / "data")
    uri = archive.as_uri()
    made = Estimator(entry_point="train.py", source_dir=uri, instance_type="local_process", platform=platform)
    assert any(f"the source at {uri} cannot be opened" in each for each in made.plan().assumed)
