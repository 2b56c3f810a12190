"""Objects below a mount are files: real mounts, read by real programs. An error has a reason and never leaves a mount."""

import errno
import mmap
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pytest
from fakes import fresh
from fakes.processes import until
from fakes.promptness import soon
from fakes.views import UNPRIVILEGED, Hanging, View, WatchedObjects, drop_root_privileges, plain_folder, tree, wait

from scriptmode.errors import DataError
from scriptmode_local._data import mounts
from scriptmode_local._data.fast_file import ObjectTree
from scriptmode_local._data.object_store import StoredObject
from scriptmode_local._inputs.fuse_mount import FuseMount
from scriptmode_local._system.forked_tasks import Tasks

#: The longest limit of the product is that of a read, two minutes.
pytestmark = pytest.mark.timeout(300)

MIB = 1024 * 1024
ODD_NAMES = [
    "plain.txt", "with spaces and 'quotes' and \"more\"", "new\nline/and\ttab", "übung/日本語/🎉.bin", "back\\slash", "-n",
    "$(touch x);`id`", "bad-\udcff-bytes", "long/" + "x" * 255, "deep/" + "d/" * 200 + "leaf", " leading", "50%20percent#?&+",
]  # fmt: skip


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


def test_every_write_fails_with_erofs(objects, views, place):
    views.mount(objects({"file": b"content", "folder/file": b""}).tree, place)
    for write in (
        lambda: (place / "file").open("ab").close(),
        (place / "new").touch,
        lambda: os.truncate(place / "file", 0),
        (place / "file").unlink,
        lambda: (place / "file").rename(place / "other"),
        lambda: (place / "file").chmod(0o777),
        (place / "new").mkdir,
    ):
        with pytest.raises(OSError) as caught:
            write()
        assert caught.value.errno == errno.EROFS
    assert (place / "file").read_bytes() == b"content"


def test_any_part_can_be_read_in_any_order_by_threads_that_share_a_file(objects, views, place):
    content = noise(40 * MIB)
    views.mount(objects({"large": content}).tree, place)
    chance = random.Random(3)
    parts = [
        (chance.randrange(len(content) + MIB), chance.choice([1, 100, 5000, 200_000, 3 * MIB])) for _ in range(400)
    ]
    with (place / "large").open("rb", buffering=0) as file, ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda part: os.pread(file.fileno(), part[1], part[0]), parts)
        assert all(read == content[start : start + size] for read, (start, size) in zip(found, parts))


def test_a_file_can_be_mapped_into_memory(objects, views, place):
    content = noise(9 * MIB + 17)
    views.mount(objects({"large": content}).tree, place)
    with (place / "large").open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert mapped[5 * MIB : 5 * MIB + 100] == content[5 * MIB : 5 * MIB + 100]
        assert mapped[:] == content


def read_error(path):
    with pytest.raises(OSError) as caught:
        path.read_bytes()
    return caught.value.errno


def test_an_object_that_was_deleted_is_an_input_output_error_with_its_reason(objects, views, place, tmp_path):
    store = objects({"a": b"content", "b": b"content"})
    view = views.mount(store.tree, place)
    (tmp_path / "control" / "deleted").touch()
    assert read_error(place / "a") == errno.EIO
    assert read_error(place / "a") == errno.EIO
    until(lambda: view.poll() or view.unreadable)
    assert view.unreadable == ["s3://b/a: there is no such object any more"]
    assert view.error is None
    (tmp_path / "control" / "deleted").unlink()
    # The page that could not be read is requested again.
    assert (place / "a").read_bytes() == b"content"


def test_an_error_in_the_middle_of_a_file_cuts_the_read_there(objects, views, place, tmp_path):
    store = objects({"large": bytes(64 * MIB)})
    views.mount(store.tree, place)
    with (place / "large").open("rb", buffering=0) as file:
        assert file.read(MIB) == bytes(MIB)
        (tmp_path / "control" / "deleted").touch()
        with pytest.raises(OSError) as caught:
            file.readall()
        assert caught.value.errno == errno.EIO
        assert file.tell() < 64 * MIB


ONE = [(StoredObject("s3://b/a", 5), "a")]


@dataclass
class Broken:
    kind: type

    def read(self, _item, _start, _end):
        raise self.kind("half a bug")


def test_a_read_that_the_store_never_answers_is_an_input_output_error_with_its_reason(views, place):
    view = views.mount(partial(tree, ONE, Hanging), place)
    for _ in range(2):
        assert read_error(place / "a") == errno.EIO
    until(lambda: view.poll() or view.unreadable, 60)
    assert view.unreadable == [
        "s3://b/a: reading it has hung for 1 s; check that its storage answers on this machine, and start the job again"
    ]
    assert [path.name for path in place.iterdir()] == ["a"]
    assert view.error is None


def test_a_server_that_hangs_itself_ends_all_reads_with_its_reason(views, place):
    view = views.mount(HangingTree, place)
    with pytest.raises(OSError):
        (place / "a").read_bytes()
    until(lambda: view.poll() or view.error, 60)
    assert view.unreadable == ["the server of the mount has hung for 1 s in request 14"]


class HangingTree(ObjectTree):
    def __init__(self):
        super().__init__(ONE, lambda _: Hanging())
        Hanging()

    def open(self, _number):
        threading.Event().wait()


@pytest.mark.parametrize("kind", [RuntimeError, SystemExit])
def test_an_unexpected_error_of_a_store_is_reported_too(views, place, kind):
    view = views.mount(partial(tree, ONE, partial(Broken, kind)), place)
    assert read_error(place / "a") == errno.EIO
    until(lambda: view.poll() or view.unreadable)
    assert view.unreadable == [f"{kind.__name__}: half a bug"]


def test_impossible_paths_are_the_reason_for_a_missing_mount(views, place):
    entries = [(StoredObject("s3://1/a", 1), "a"), (StoredObject("s3://2/a/b", 1), "a/b")]
    view = views.begin(partial(tree, entries, object), place)
    wait(view)
    assert str(view.error).startswith("s3://2/a/b: 'a' would be a file and a directory")
    assert not view.is_up
    assert mounts.mounted_below(place) == []


def test_a_killed_server_is_the_reason_and_its_mount_can_be_unmounted(objects, views, place, tmp_path):
    view = views.mount(objects({"a": b"content"}).tree, place)
    os.kill(view.pid, signal.SIGKILL)
    until(lambda: view.poll() or view.error)
    assert str(view.error) == f"the mount at {str(place)!r} is gone: the process that did it ended with SIGKILL"
    with pytest.raises(OSError) as caught:
        place.stat()
    assert caught.value.errno == errno.ENOTCONN
    mounts.detach(tmp_path)
    assert list(place.iterdir()) == []
    view.end()


def test_an_unmounted_mount_is_the_reason(objects, views, place):
    view = views.mount(objects({"a": b"content"}).tree, place)
    mounts.detach(place)
    until(lambda: view.poll() or view.error)
    assert str(view.error) == f"the mount at {str(place)!r} is gone: it was unmounted by another process"


def test_a_mount_is_not_unmounted_through_a_link(tmp_path):
    real, place = tmp_path / "real", tmp_path / "real" / "channel"
    place.mkdir(parents=True)
    (tmp_path / "link").symlink_to(real)
    device = mounts.attach(place)
    try:
        # As if the link had come after the mounts were read.
        with pytest.raises(NotADirectoryError):
            mounts._detach_one(os.fsencode(tmp_path / "link" / "channel"))
        assert mounts.mounted_below(place) == [os.fsencode(place)]
    finally:
        os.close(device)
        mounts.detach(place)
    assert mounts.mounted_below(place) == []


def test_stopping_frees_a_reader_of_a_store_that_hangs(objects, views, place, tmp_path):
    store = objects({"a": bytes(MIB)})
    view = views.mount(store.tree, place)
    (tmp_path / "control" / "held").touch()
    with subprocess.Popen(["cat", place / "a"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reader:
        until(store.reads)
        view.end()
        reader.communicate(timeout=240)
        assert reader.returncode == 1
    assert mounts.mounted_below(place) == []
    assert list(place.iterdir()) == []
    place.rmdir()


@pytest.mark.parametrize("start", [0, 2 * MIB])
def test_a_killed_reader_ends_though_its_store_hangs(objects, views, place, tmp_path, start):
    store = objects({"a": bytes(3 * MIB)})
    views.mount(store.tree, place)
    (tmp_path / "control" / "held").touch()
    program = f"import os, sys; os.pread(os.open(sys.argv[1], os.O_RDONLY), 10, {start})"
    with subprocess.Popen([sys.executable, "-c", program, place / "a"]) as reader:
        until(store.reads)
        reader.kill()
        assert reader.wait(timeout=240) == -signal.SIGKILL


def test_a_file_that_hangs_delays_no_other(objects, views, place, tmp_path):
    store = objects({"a": b"a", "b": b"b"})
    views.mount(store.tree, place)
    assert (place / "b").read_bytes() == b"b"
    (tmp_path / "control" / "held").touch()
    with subprocess.Popen(["cat", place / "a"], stdout=subprocess.PIPE) as reader:
        until(lambda: len(store.reads()) == 2)
        assert (place / "b").read_bytes() == b"b"
        assert sorted(path.name for path in place.iterdir()) == ["a", "b"]
        (tmp_path / "control" / "held").unlink()
        assert reader.communicate(timeout=240)[0] == b"a"


def test_a_signal_does_not_cut_a_read_short(objects, views, place, tmp_path):
    store = objects({"a": b"a" * 100})
    views.mount(store.tree, place)
    (tmp_path / "control" / "held").touch()
    program = (
        "import os, signal, sys; signal.signal(signal.SIGUSR1, lambda *_: print('signal', flush=True));"
        "file = os.open(sys.argv[1], os.O_RDONLY); print(len(os.read(file, 100)))"
    )
    with subprocess.Popen([sys.executable, "-c", program, place / "a"], stdout=subprocess.PIPE, text=True) as reader:
        until(store.reads)
        reader.send_signal(signal.SIGUSR1)
        (tmp_path / "control" / "held").unlink()
        answer = reader.communicate(timeout=240)[0].split()
    assert sorted(answer) == ["100", "signal"]


def test_mounts_of_a_dead_agent_can_be_unmounted(objects, tmp_path):
    job = tmp_path / "job with spaces\n"
    store = objects({"a": b"content"})
    places = [job / "hosts" / host / "train" for host in ("algo-1", "algo-2")]

    agent = fresh.Interpreter()
    for mount_point in places:
        wait(View(agent, store.tree, mount_point))
    assert len(mounts.mounted_below(job)) == 2
    agent.close()
    mounts.detach(job)
    assert mounts.mounted_below(job) == []
    shutil.rmtree(job)
    mounts.detach(job)


def test_a_mount_in_use_is_unmounted_at_once(objects, views, place):
    view = views.mount(objects({"folder/a": bytes(MIB)}).tree, place)
    file, folder = (os.open(place / path, os.O_RDONLY) for path in ("folder/a", "folder"))
    assert os.pread(file, 10, 0) == bytes(10)
    view.end()
    with pytest.raises(OSError, match="not connected"):
        os.pread(file, 10, MIB - 10)
    with pytest.raises(OSError, match="not connected"):
        os.close(file)
    os.close(folder)
    assert list(place.iterdir()) == []


def test_stopping_twice_and_after_all_children_were_killed_is_not_an_error(objects, views, place):
    view = views.mount(objects({}).tree, place)
    os.kill(view.pid, signal.SIGKILL)
    view.reap()
    view.end()
    view.end()
    assert str(view.error) == f"the mount at {str(place)!r} is gone: its process was killed with all others of the job"


def as_nobody(work, *arguments):
    """Give what ``work`` gives in a process of a user without rights."""
    return fresh.call(drop_and_work, work, *arguments)


def drop_and_work(work, *arguments):
    drop_root_privileges()
    return work(*arguments)


def test_a_user_without_rights_mounts_reads_and_unmounts(objects):
    with plain_folder("/tmp") as folder:
        store = WatchedObjects({"a b": b"content", "large": bytes(9 * MIB)}, folder)
        expected = ["content", True, None, True, [], []]
        found = as_nobody(mount_and_read, store, folder, folder / "data\nhere")
        assert found == [*expected, UNPRIVILEGED if os.geteuid() == 0 else os.geteuid()]


def mount_and_read(store, folder, place):
    assert mounts.mount_obstacle(folder) is None
    view = FuseMount(store.tree, place, Tasks(), "the server")
    wait(view)
    read = [(place / "a b").read_text(), (place / "large").read_bytes() == bytes(9 * MIB), view.error]
    said = subprocess.run(["touch", place / "a b"], capture_output=True, check=False, text=True).stderr
    os.kill(view.pid, signal.SIGKILL)
    until(lambda: view.poll() or view.error)
    view.end()
    left = [os.fsdecode(mounted) for mounted in mounts.mounted_below(folder)]
    again = FuseMount(store.tree, place, Tasks(), "the server")
    wait(again)
    again.end()
    return [*read, "Read-only file system" in said, left, os.listdir(place), os.geteuid()]  # noqa: PTH208


@pytest.mark.root
def test_root_without_the_right_to_mount_gets_the_reason(tmp_path):
    program = "from scriptmode_local._data import mounts; print(mounts.mount_obstacle())"
    answer = subprocess.run(
        ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", "--", sys.executable, "-c", program],
        capture_output=True, check=True, text=True, env={"PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout  # fmt: skip
    assert answer == (
        "mounting a FUSE file system was refused: Operation not permitted; start the container with: docker run "
        "--device /dev/fuse --cap-add SYS_ADMIN\n"
    )


def test_a_machine_without_the_device_gets_the_reason(monkeypatch, place):
    monkeypatch.setattr(mounts, "DEVICE", "/dev/no-fuse")
    assert str(mounts.mount_obstacle()).startswith("there is no /dev/no-fuse; load the kernel's module fuse")
    with pytest.raises(DataError, match="there is no /dev/no-fuse"):
        mounts.attach(place)


def test_a_user_without_the_helper_gets_the_name_of_its_package():
    advice = "which is not installed; install it: apt install fuse3"
    assert as_nobody(obstacle_without_helper) == f"an unprivileged user mounts through fusermount3, {advice}"


def test_the_helpers_error_output_is_the_reason(monkeypatch, tmp_path):
    helper = tmp_path / "fusermount3"
    helper.write_text("#!/bin/sh\necho 'fusermount3: not today' >&2\nexit 1\n")
    helper.chmod(0o755)
    monkeypatch.setattr(mounts, "HELPERS", (str(helper),))
    with pytest.raises(DataError, match=r"fusermount3 was refused: fusermount3: not today"):
        mounts._attach_by(mounts._helper(), tmp_path)


def obstacle_without_helper():
    mounts.HELPERS = ()
    return str(mounts.mount_obstacle())


@pytest.mark.prompt
def test_a_trial_mount_leaves_nothing(tmp_path):
    before = time.monotonic()
    assert mounts.mount_obstacle(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    soon(time.monotonic() - before, 5)
