"""Objects below a mount are files: real mounts, read by real programs."""

import errno
import mmap
import os
import random
import shutil
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

MIB = 1024 * 1024
ODD_NAMES = [
    "plain.txt",
    "with spaces and 'quotes' and \"more\"",
    "new\nline/and\ttab",
    "übung/日本語/🎉.bin",
    "back\\slash",
    "-n",
    "~",
    "$(touch x);`id`",
    "a=b,c",
    "bad-\udcff-bytes",
    "long/" + "x" * 255,
    "deep/" + "d/" * 200 + "leaf",
    " leading",
    "trailing ",
    "50%20percent#?&+",
]


@pytest.fixture
def place(tmp_path):
    return tmp_path / "data with 'odd'\nname" / "train"


def noise(size, seed=7):
    return random.Random(seed).randbytes(size)


def test_every_file_is_its_object_byte_for_byte(objects, views, place):
    sizes = [0, 1, 4095, 4096, 4097, 131_072, MIB - 1, 4 * MIB, 4 * MIB + 1, 23 * MIB + 5]
    contents = {f"part/{size}": noise(size, size) for size in sizes}
    views.mount(objects(contents).tree, place)
    for path, content in contents.items():
        assert (place / path).stat().st_size == len(content)
        assert (place / path).read_bytes() == content
        done = subprocess.run(["cmp", place / path, "-"], input=content, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout


def test_nothing_is_downloaded_before_the_first_read(objects, views, place):
    store = objects({"a": noise(10), "b/c": noise(MIB)})
    views.mount(store.tree, place)
    assert subprocess.run(["find", place, "-type", "f", "-size", "+1"], stdout=subprocess.PIPE, check=True).stdout
    assert store.reads() == []
    assert (place / "a").read_bytes() == noise(10)
    assert store.reads() == [(0, 10)]


def test_names_are_the_paths_of_objects_with_any_characters(objects, views, place):
    contents = {name: os.fsencode(name) for name in ODD_NAMES}
    views.mount(objects(contents).tree, place)
    found = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    assert found == set(contents)
    for name, content in contents.items():
        assert (place / name).read_bytes() == content
    assert not (place / "missing").exists()
    assert not (place / "übung" / "missing").exists()
    with pytest.raises(NotADirectoryError):
        (place / "plain.txt" / "below").stat()


def test_a_directory_has_the_order_of_the_listing(objects, views, place):
    store = objects({"b": b"", "a/2": b"", "c": b"", "a/1": b""})
    views.mount(store.tree, place)
    assert [path.name for path in place.iterdir()] == ["b", "a", "c"]
    assert [path.name for path in (place / "a").iterdir()] == ["2", "1"]
    listed = subprocess.run(["ls", "-a", place / "a"], capture_output=True, check=True, text=True).stdout
    assert listed == ".\n..\n1\n2\n"


def test_files_and_folders_may_be_read_and_nothing_else(objects, views, place):
    before = time.time()
    views.mount(objects({"folder/file": b"x" * 1000}).tree, place)
    file, folder = (place / "folder/file").stat(), (place / "folder").stat()
    assert stat.filemode(file.st_mode) == "-r--r--r--"
    assert stat.filemode(folder.st_mode) == "dr-xr-xr-x"
    assert file.st_uid == os.geteuid()
    assert file.st_blocks == 2
    assert before - 1 <= file.st_mtime <= time.time()
    assert shutil.disk_usage(place).free == 0


def opens_to_write(path):
    path.open("ab").close()


WRITES = {
    "a file is opened to append": lambda place: opens_to_write(place / "file"),
    "a file is made": lambda place: opens_to_write(place / "new"),
    "a file is cut": lambda place: os.truncate(place / "file", 0),
    "a file is removed": lambda place: (place / "file").unlink(),
    "a file is moved": lambda place: (place / "file").rename(place / "other"),
    "a file gets another mode": lambda place: (place / "file").chmod(0o777),
    "a file gets another time": lambda place: os.utime(place / "file"),
    "a link is made": lambda place: (place / "link").symlink_to("file"),
    "a folder is made": lambda place: (place / "new").mkdir(),
    "a folder is removed": lambda place: (place / "folder").rmdir(),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_every_write_fails_with_erofs(objects, views, place, write):
    views.mount(objects({"file": b"content", "folder/file": b""}).tree, place)
    with pytest.raises(OSError) as caught:
        write(place)
    assert caught.value.errno == errno.EROFS
    assert (place / "file").read_bytes() == b"content"


def test_any_part_can_be_read_in_any_order(objects, views, place):
    content = noise(40 * MIB)
    views.mount(objects({"large": content}).tree, place)
    chance = random.Random(3)
    with (place / "large").open("rb", buffering=0) as file:
        for _ in range(400):
            start, size = chance.randrange(len(content) + MIB), chance.choice([1, 100, 5000, 200_000, 3 * MIB])
            assert os.pread(file.fileno(), size, start) == content[start : start + size]


def test_a_file_can_be_mapped_into_memory(objects, views, place):
    content = noise(9 * MIB + 17)
    views.mount(objects({"large": content}).tree, place)
    with (place / "large").open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert mapped[5 * MIB : 5 * MIB + 100] == content[5 * MIB : 5 * MIB + 100]
        assert mapped[:] == content


READER = """
import hashlib, sys
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        print(hashlib.sha256(file.read()).hexdigest())
"""


def test_several_processes_read_several_files_at_once(objects, views, place):
    contents = {f"{number}.bin": noise(7 * MIB + number, number) for number in range(6)}
    views.mount(objects(contents).tree, place)
    paths = [place / name for name in contents]
    command = [sys.executable, "-c", READER]
    readers = [subprocess.Popen([*command, *paths[turn:], *paths[:turn]], stdout=subprocess.PIPE) for turn in range(4)]
    answers = [reader.communicate(timeout=60)[0].split() for reader in readers]
    expected = subprocess.run(["sha256sum", *paths], capture_output=True, check=True).stdout
    digests = [line.split()[0].lstrip(b"\\") for line in expected.splitlines() if line.strip()][: len(paths)]
    assert all(answer == digests[turn:] + digests[:turn] for turn, answer in enumerate(answers))


def test_threads_that_share_a_file_get_their_own_ranges(objects, views, place):
    content = noise(24 * MIB)
    views.mount(objects({"large": content}).tree, place)
    descriptor = os.open(place / "large", os.O_RDONLY)
    try:
        with ThreadPoolExecutor(8) as pool:
            starts = range(0, len(content), 100_003)
            found = pool.map(lambda start: os.pread(descriptor, 100_003, start), starts)
            assert b"".join(found) == content
    finally:
        os.close(descriptor)


@pytest.mark.slow
def test_a_hundred_thousand_files_are_listed_and_found(objects, views, place):
    count = 100_000
    store = objects(
        {f"{number % 10}/{number:06}.jpg" if number % 2 else f"{number:06}.jpg": b"" for number in range(count)}
    )
    views.mount(store.tree, place)
    found = subprocess.run(["find", place, "-type", "f", "-printf", "."], capture_output=True, check=True).stdout
    assert len(found) == count
    assert len(list(place.iterdir())) == count // 2 + 5
    assert len(list((place / "7").iterdir())) == count // 10
    assert (place / "7" / "099997.jpg").is_file()
