"""Hosts that are containers: requests, limits, both streams of each in one log, and the owner of their files."""

import os
import struct
import threading
import time
from contextlib import closing
from pathlib import Path
from socket import socketpair

import pytest
from fakes.local_jobs import channel, request_for
from fakes.processes import until
from hypothesis import given, strategies as st

from scriptmode.errors import RequestError, SpecError
from scriptmode_local._hosts.container_host import MergedStreams, copy_output
from scriptmode_local._hosts.container_limits import LIMITS_VARIABLE, ContainerLimits, default_pids, parse_limits
from scriptmode_local._hosts.job_containers import WrittenFolder, folder_inodes, restore_owner
from scriptmode_local._service import validation
from scriptmode_runtime._files import beneath, directory_tree

MIB, GIB = 1024**2, 1024**3


def test_nothing_is_limited_unless_it_is_asked_for():
    nothing = ContainerLimits(shm_size=None, memory=None, cpus=None, pids=None, no_new_privileges=True)
    assert [parse_limits(None, {}), parse_limits({}, {LIMITS_VARIABLE: ""})] == [nothing] * 2


SIZES = {"65536k": 64 * MIB, "64M": 64 * MIB, "64mb": 64 * MIB, "8g": 8 * GIB}
#: Names and values as they may be given, and what they become.
ACCEPTED = [
    *((name, given, size) for name in ("shm_size", "memory") for given, size in {**SIZES, 64 * MIB: 64 * MIB}.items()),
    *(("cpus", given, float(given)) for given in (2, 0.5, "1.5", "0.01")),
    *(("pids", given, int(given)) for given in (32, "4096", 10**6)),
    *(("no_new_privileges", given, False) for given in (False, "false", "0", "no")),
    *(("no_new_privileges", given, True) for given in (True, "True")),
]


@pytest.mark.parametrize(("name", "given", "value"), ACCEPTED)
def test_a_limit_is_given_as_a_value_or_as_text(name, given, value):
    expected = ContainerLimits(**{name: value})
    assert parse_limits({name: given}, {}) == expected
    assert parse_limits({name: str(given)}, {}) == expected
    assert parse_limits(None, {LIMITS_VARIABLE: f"{name}={given}"}) == expected
    assert type(getattr(parse_limits({name: given}, {}), name)) is type(value)


@pytest.mark.parametrize(
    ("hosts", "cpus", "kernel", "pids"),
    [
        pytest.param(1, 2, 32768, 6144, id="a small machine"),
        pytest.param(4, 2, 32768, 4096, id="its hosts together leave half"),
        pytest.param(64, 2, 32768, 1024, id="enough for TensorFlow, however many"),
        pytest.param(8, 96, 4194304, 102400, id="a large machine"),
    ],
)
def test_hosts_may_have_many_processes_and_leave_the_machine_some(hosts, cpus, kernel, pids):
    assert default_pids(hosts, cpus, kernel) == pids
    assert default_pids(hosts) >= 1024


def test_what_is_given_goes_before_the_variable():
    environ = {LIMITS_VARIABLE: " memory = 2g ,cpus=2,"}
    assert parse_limits({"memory": "4g"}, environ) == ContainerLimits(memory=4 * GIB, cpus=2.0)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("8g", "container_limits is '8g'; give a dict: {'memory': '8g', 'cpus': 2, 'shm_size': '4g'}"),
        ({"memroy": "8g"}, "container_limits has no key 'memroy'; did you mean 'memory'?"),
        ({"memory": "8 g"}, "container_limits['memory'] is '8 g'; give a number of bytes, or a size such as '512m'"),
        ({"memory": 0}, "container_limits['memory'] is 0"),
        ({"shm_size": "1.5g"}, "container_limits['shm_size'] is '1.5g'"),
        ({"memory": "5m"}, "container_limits['memory'] is '5m'; a container needs 6m, TensorFlow about 1g"),
        ({"cpus": 0}, "container_limits['cpus'] is 0; give the number of CPUs that a host may use, such as 2 or 0.5"),
        ({"cpus": "nan"}, "container_limits['cpus'] is 'nan'"),
        ({"pids": 31}, "container_limits['pids'] is 31; give the number of processes and threads that a host may have"),
        ({"no_new_privileges": "maybe"}, "container_limits['no_new_privileges'] is 'maybe'; give True or False"),
        # Of the variable.
        ("memory", f"{LIMITS_VARIABLE}: 'memory' is not of the form memory=8g; correct the entry"),
        ("ram=8g", f"{LIMITS_VARIABLE} has no key 'ram'"),
        ("memory=", f"{LIMITS_VARIABLE}: memory is ''; give a number of bytes"),
    ],
)
def test_a_wrong_limit_is_named_with_the_argument_or_the_variable_its_key_and_value(asked, message):
    is_of_variable = message.startswith(LIMITS_VARIABLE)
    with pytest.raises(SpecError) as raised:
        parse_limits(*((None, {LIMITS_VARIABLE: asked}) if is_of_variable else (asked, {})))
    assert str(raised.value).startswith(message)


IMAGE = "000000000000.dkr.ecr.us-east-1.amazonaws.com/image:tag"


def request(**algorithm):
    made = request_for("job", channels=[channel("train", "file:///data")])
    made["ResourceConfig"]["InstanceType"] = "local"
    made["AlgorithmSpecification"] |= {"TrainingImage": IMAGE, **algorithm}
    return made


def problem(wrong):
    with pytest.raises(RequestError) as caught:
        validation.validate_request(wrong)
    return str(caught.value)


def groups(*types):
    return {
        "InstanceGroups": [
            {"InstanceGroupName": f"group-{number}", "InstanceType": kind, "InstanceCount": 1}
            for number, kind in enumerate(types)
        ],
        "VolumeSizeInGB": 1,
    }


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        ({"TrainingImage": None}, "AlgorithmSpecification.TrainingImage is missing; give the image of the hosts"),
        (
            {"TrainingImageConfig": {"TrainingRepositoryAccessMode": "Vpc"}},
            "AlgorithmSpecification.TrainingImageConfig is not supported by the local platform yet; leave it out",
        ),
        (
            {"ContainerArguments": "pass"},
            "AlgorithmSpecification.ContainerArguments is 'pass', a str; it must be a list",
        ),
    ],
)
def test_an_algorithm_that_cannot_run_is_refused(algorithm, message):
    made = request(**algorithm)
    if "TrainingImage" in algorithm:
        del made["AlgorithmSpecification"]["TrainingImage"]
    assert message in problem(made)


@pytest.mark.parametrize("types", [("local", "local_process"), ("local_process", "local_gpu")])
def test_processes_do_not_go_with_containers(types):
    made = request() | {"ResourceConfig": groups(*types)}
    assert "'local_process' cannot be combined with others; use one kind" in problem(made)


OUT, ERR = 1, 2


def merged(*frames):
    written = []
    streams = MergedStreams(written.append)
    for stream, data in frames:
        streams.add(stream, data)
    streams.release()
    return b"".join(written)


@pytest.mark.parametrize(
    ("frames", "log"),
    [
        ([(OUT, b"read"), (ERR, b"failed\n"), (OUT, b" fast\n")], b"read fast\nfailed\n"),
        ([(OUT, b"a"), (ERR, b"E"), (OUT, b"b\nc"), (ERR, b"F\n"), (OUT, b"d\n")], b"ab\nEF\ncd\n"),
        ([(OUT, b" 3 of 9\r"), (ERR, b"warning\n"), (OUT, b" 4 of 9\r")], b" 3 of 9\rwarning\n 4 of 9\r"),
        ([(OUT, b"no end"), (ERR, b"failed\n")], b"no end\nfailed\n"),
    ],
    ids=["a line of two writes", "both streams", "a progress bar", "no line end"],
)
def test_the_lines_of_a_containers_streams_are_whole(frames, log):
    assert merged(*frames) == log


@given(st.lists(st.tuples(st.sampled_from([OUT, ERR]), st.sampled_from([b"a", b"b\n", b"c\nd", b"\n", b"e\nf\n"]))))
def test_every_line_of_a_stream_is_in_the_log_in_its_order(frames):
    streams = {name: b"".join(data.replace(b"\n", b"%d\n" % name) for stream, data in frames if stream == name)
               for name in (OUT, ERR)}  # fmt: skip
    log = merged(*((stream, data.replace(b"\n", b"%d\n" % stream)) for stream, data in frames)).split(b"\n")
    for name, sent in streams.items():
        ended = sent.split(b"\n")[:-1]
        assert [line for line in log if line.endswith(b"%d" % name)] == ended


def test_a_line_without_an_end_delays_the_other_stream_for_a_moment_only():
    written = []
    ours, dockers = socketpair()
    with closing(ours), closing(dockers):
        copying = threading.Thread(target=copy_output, args=(ours, written.append))
        copying.start()
        for stream, data in ((OUT, b"Epoch 1 ..."), (ERR, b"a warning\n")):
            dockers.sendall(struct.pack(">BxxxL", stream, len(data)) + data)
        until(lambda: b"".join(written) == b"Epoch 1 ...\na warning\n")
        dockers.sendall(struct.pack(">BxxxL", OUT, 6) + b" done\n")
        dockers.shutdown(1)
        copying.join()
    assert b"".join(written) == b"Epoch 1 ...\na warning\n done\n"


OWNER = (4321, 4321)
#: Who wrote it in a container.
OTHER = 1234


def owned(path, uid=OTHER):
    os.chown(path, uid, uid, follow_symlinks=False)
    return path


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "hosts"
    (folder / "theirs").mkdir(parents=True)
    (folder / "theirs" / "of root").touch()
    (folder / "file").touch()
    owned(folder, OWNER[0])
    owned(folder / "theirs")
    owned(folder / "file")
    return folder


def uids(folder):
    return {path.relative_to(folder).as_posix(): path.lstat().st_uid for path in folder.rglob("*")}


@pytest.mark.root
def test_all_below_a_folder_is_given_back_and_what_links_lead_to_stays_whose_it_is(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").touch()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    owned(folder / "link")
    (folder / "theirs" / "link").symlink_to(tmp_path / "elsewhere" / "file")
    restore_owner([WrittenFolder(folder, OWNER)], "image", "job")
    assert {path.lstat().st_uid for path in (tmp_path / "elsewhere", tmp_path / "elsewhere" / "file")} == {0}
    assert set(uids(folder).values()) == {OWNER[0]}


@pytest.mark.root
def test_of_a_shared_folder_only_what_is_new_is_given_back(tmp_path):
    shared = tmp_path / "shared"
    (shared / "before").mkdir(parents=True)
    owned(shared / "before", 77)
    (shared / "before" / "old").touch()
    owned(shared / "before" / "old", 77)
    known = folder_inodes(shared)
    assert known == {path.stat().st_ino for path in (shared, shared / "before")}
    # Times of change have the kernel's ticks.
    since = time.time()
    until(lambda: _is_later(tmp_path, since))
    (shared / "before" / "new").touch()
    (shared / "new").mkdir()
    (shared / "new" / "file").touch()
    for path in (shared / "before" / "new", shared / "new"):
        owned(path)
    restore_owner([WrittenFolder(shared, OWNER, since, known)], "image", "job")
    assert uids(shared) == {
        "before": 77, "before/old": 77, "before/new": OWNER[0], "new": OWNER[0], "new/file": OWNER[0],
    }  # fmt: skip


def _is_later(folder, since):
    probe = Path(folder, "probe")
    probe.touch()
    return probe.stat().st_ctime > since


@pytest.mark.root
@pytest.mark.slow
def test_thousands_of_folders_in_each_other_are_given_back(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(3_000):
        os.mkdir("below", dir_fd=descriptor)
        os.chown("below", OTHER, OTHER, dir_fd=descriptor)
        below = os.open("below", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    restore_owner([WrittenFolder(folder, OWNER)], "image", "job")
    with beneath.Directory(folder) as directory:
        assert {entry.status.st_uid for entry in directory_tree.walk(directory)} == {OWNER[0]}
    directory_tree.remove_tree(folder)
