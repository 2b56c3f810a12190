"""What is beneath a directory is opened, created, walked and removed, and nothing else."""

import contextlib
import ctypes
import errno
import gc
import os
import stat
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from fakes import link_chains

from scriptmode_runtime._files import beneath, directory_tree
from scriptmode_runtime._files.beneath import Directory, EscapeError

DEPTH = 3_000


@pytest.fixture
def base(tmp_path):
    base = tmp_path / "base"
    (base / "a" / "b").mkdir(parents=True)
    (base / "a" / "b" / "file").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    return base


@contextlib.contextmanager
def mounted(folder):
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def content(directory, path):
    with os.fdopen(directory.open_file(path)) as file:
        return file.read()


def create(directory, path):
    with directory.at(path) as at:
        return os.open(at.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=at.dir_fd)


def descriptors():
    return set(Path("/proc/self/fd").iterdir())


def nested(folder, depth):
    """Make folders in folders, with a file in the last one."""
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("below", dir_fd=descriptor)
        below = os.open("below", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        pytest.param("b/file", "a/link", id="a file below"),
        pytest.param("../a/b/../b/file", "a/link", id="up and down"),
        pytest.param("/opt/ml/a/b/file", "a/link", id="the name it is seen by"),
        pytest.param("/opt/ml/", "link/a/b/file", id="the directory itself"),
        pytest.param("a", "link/b/file", id="in the middle"),
        pytest.param("a//./b/", "link/../b/./file", id="up from where the link leads"),
    ],
)
def test_links_that_stay_beneath_are_followed(base, target, path):
    (base / path.replace("/b/file", "").replace("/a", "").replace("/../b/./file", "")).symlink_to(target)
    with Directory(base, seen_as="/opt/ml") as directory:
        assert content(directory, path) == "inside"
        assert directory.stat(path).st_size == 6


@pytest.mark.parametrize(
    "target",
    ["/etc/passwd", "../secret", "a/../../secret", "/opt/mlx/a", "/opt/ml/../../secret", "none/../../secret", "/"],
)
def test_links_that_lead_out_are_not_followed(base, target):
    (base / "link").symlink_to(target)
    (base / "again").symlink_to("link")
    with Directory(base, seen_as="/opt/ml") as directory:
        for path in ("link", "again", "a/../link", "link/x", "/etc/passwd", "..", "a/../../secret"):
            with pytest.raises(EscapeError):
                directory.open_file(path)
            with pytest.raises(EscapeError):
                directory.stat(path)
    with pytest.raises(EscapeError):
        beneath.checked("a/../../secret")


def test_a_chain_longer_than_any_path_leads_nowhere(tmp_path):
    base = tmp_path / "base"
    base.mkdir()
    (tmp_path / "secret").write_text("outside")
    (base / "file").write_text("inside")
    chain = link_chains.write_folder(base)
    (base / "inside").symlink_to(f"{chain}/file")
    (base / "escape").symlink_to(f"{chain}/../secret")
    with Directory(base) as directory:
        with pytest.raises(EscapeError):
            directory.open_file("escape")
        assert content(directory, "inside") == "inside"


def test_only_regular_files_are_opened_and_a_circle_of_links_ends(base):
    os.mkfifo(base / "fifo")
    for name, target in (("to-fifo", "fifo"), ("one", "two"), ("two", "one")):
        (base / name).symlink_to(target)
    with Directory(base) as directory:
        for path in ("fifo", "to-fifo"):
            with pytest.raises(OSError, match="not a regular file"):
                directory.open_file(path)
        with pytest.raises(IsADirectoryError):
            directory.open_file("a")
        with pytest.raises(OSError, match="Too many levels of symbolic links"):
            directory.open_file("one")


def test_files_are_made_where_links_stay_beneath(base):
    (base / "link").symlink_to("a/b")
    (base / "out").symlink_to("..")
    with Directory(base) as directory:
        os.close(create(directory, "link/new"))
        with pytest.raises(FileExistsError):
            create(directory, "link")
        with pytest.raises(EscapeError):
            create(directory, "out/new")
    assert (base / "a/b/new").is_file()
    assert not (base.parent / "new").exists()


@pytest.mark.slow
def test_thousands_of_folders_in_each_other_are_walked_and_removed_with_few_descriptors(base):
    nested(base / "a", DEPTH)
    # Those of the process that other tests left to the garbage collector.
    gc.collect()
    before = descriptors()
    with Directory(base) as directory:
        entries = []
        for entry in directory_tree.walk(directory):
            entries.append(entry.path)
            if entry.path.count("/") == DEPTH // 2:
                assert len(descriptors() - before) < 5
        deepest = max(entries, key=len)
        assert deepest == "a" + "/below" * DEPTH + "/file"
        assert len(deepest) > os.pathconf("/", "PC_PATH_MAX")
        assert content(directory, deepest) == ""
        directory_tree.remove_beneath(directory, "a")
    assert len(descriptors()) == len(before)
    assert list(base.iterdir()) == []


def test_a_walk_names_everything_and_follows_no_link(base):
    (base / "link").symlink_to(base.parent)
    (base / "a" / "z").write_text("")
    with Directory(base) as directory:
        found = [(entry.path, stat.S_IFMT(entry.status.st_mode)) for entry in directory_tree.walk(directory)]
        with directory.below("a") as below:
            assert [entry.path for entry in directory_tree.walk(below)] == ["b", "b/file", "z"]
        for path, error in (("link", NotADirectoryError), ("a/none", FileNotFoundError), ("a/../..", EscapeError)):
            with pytest.raises(error):
                directory.below(path)
    assert found == [
        ("a", stat.S_IFDIR), ("a/b", stat.S_IFDIR), ("a/b/file", stat.S_IFREG), ("a/z", stat.S_IFREG),
        ("link", stat.S_IFLNK),
    ]  # fmt: skip


def test_a_directory_that_may_not_be_searched_is_passed_over(base):
    (base / "closed" / "below").mkdir(parents=True)
    (base / "z").touch()
    (base / "closed").chmod(0)
    program = """
import os, sys
sys.path.insert(0, sys.argv[2])
from scriptmode_runtime._files import beneath, directory_tree
with beneath.Directory(sys.argv[1]) as directory:
    if os.geteuid() == 0:
        os.setuid(12321)
    print([entry.path for entry in directory_tree.walk(directory, failed=lambda path, error: print(path, error.errno))])
"""
    argv = (sys.executable, "-c", program, str(base), str(Path(beneath.__file__).parents[2]))
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    (base / "closed").chmod(0o700)
    assert done.stdout.splitlines() == ["closed 13", "['a', 'a/b', 'a/b/file', 'closed', 'z']"]


def test_nothing_is_removed_through_a_link(base):
    kept = base.parent / "kept"
    (kept / "data").mkdir(parents=True)
    (base / "input").symlink_to(kept)
    (base / "a" / "link").symlink_to(kept)
    with Directory(base) as directory:
        with pytest.raises(NotADirectoryError):
            directory_tree.remove_beneath(directory, "input/data")
        directory_tree.remove_beneath(directory, "a")
        directory_tree.remove_beneath(directory, "input")
        directory_tree.remove_beneath(directory, "none/none")
    directory_tree.remove_tree(base / "none" / "none")
    assert (kept / "data").is_dir()
    assert list(base.iterdir()) == []


@pytest.mark.root
def test_failed_is_called_for_a_file_that_cannot_be_removed_and_the_rest_is_removed(base):
    (base / "a" / "kept").mkdir()
    (base / "a" / "other").write_text("")
    told = []
    with mounted(base / "a" / "kept"), Directory(base) as directory:
        directory_tree.remove_beneath(directory, "a", failed=lambda path, error: told.append((path, error.errno)))
        with pytest.raises(OSError, match="another file system is mounted there"):
            directory_tree.remove_beneath(directory, "a")
    assert told == [("a/kept", errno.EXDEV), ("a", errno.ENOTEMPTY)]
    assert [path.name for path in (base / "a").iterdir()] == ["kept"]


def test_failed_is_called_for_a_single_file_too(base, monkeypatch):
    def refuse(name, **_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)

    told = []
    with Directory(base) as directory:
        monkeypatch.setattr(os, "unlink", refuse)
        directory_tree.remove_beneath(directory, "a/b/file", lambda path, error: told.append((path, error.errno)))
        with pytest.raises(PermissionError):
            directory_tree.remove_beneath(directory, "a/b/file")
    assert told == [("a/b/file", errno.EACCES)]


def test_a_directory_that_is_replaced_by_a_link_at_the_same_time_is_never_followed(base, tmp_path):
    """A script swaps a folder and a link while the agent reads, makes and removes below it."""
    outside = tmp_path / "outside"
    (outside / "data").mkdir(parents=True)
    (outside / "data" / "victim").write_text("kept")
    (base / "input" / "data").mkdir(parents=True)
    (base / "link").symlink_to(outside)
    ended = threading.Event()
    exchange = partial(ctypes.CDLL(None).renameat2, -1, os.fsencode(base / "link"), -1, os.fsencode(base / "input"), 2)

    def swap():
        while not ended.is_set():
            assert exchange() == 0

    swapping = threading.Thread(target=swap)
    swapping.start()
    made = 0
    try:
        with Directory(base) as directory:
            for _ in range(1_000):
                for act in (
                    lambda: os.close(directory.open_file("input/data/victim")),
                    lambda: os.close(create(directory, "input/data/new")),
                    lambda: directory_tree.remove_beneath(directory, "input/data/new"),
                ):
                    with contextlib.suppress(OSError):
                        act()
                        made += 1
    finally:
        ended.set()
        swapping.join()
    assert made
    assert [path.name for path in (outside / "data").iterdir()] == ["victim"]
    assert (outside / "data" / "victim").read_text() == "kept"
