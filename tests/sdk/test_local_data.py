"""Staging of inputs and collecting of outputs, on real files."""

import os
import stat
import tarfile

import pytest
from fakes.local_jobs import channel, request_for

from scriptmode.data.staging import StagingArea
from scriptmode.data.stores import Stores
from scriptmode.errors import DataError
from scriptmode.platforms.local.inputs import file_mode
from scriptmode.platforms.local.outputs import artifacts
from scriptmode.platforms.local.system.durable import ChangedDirectories
from scriptmode.platforms.opt_ml import Sandbox
from scriptmode.request.parse import parse_request


def sandboxes(folder, count=1):
    return [Sandbox(f"algo-{number}", folder / f"algo-{number}") for number in range(1, count + 1)]


def staged(folder, *wanted, hosts=1, on_machine=None, links_files=False):
    """Stage for all hosts, or for the one of them that is on this machine."""
    job = parse_request(request_for("job", hosts=hosts, channels=wanted))
    here = [each for each in sandboxes(folder / "hosts", hosts) if on_machine in (None, each.host)]
    area = StagingArea(folder / "channels", links_files=links_files)
    file_mode.stage_channels(job, here, Stores(), area, report=lambda *_: None)
    return folder / "hosts"


def files(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    (folder / "deep").mkdir(parents=True)
    (folder / "b").write_text("B")
    (folder / "deep" / "a").write_text("A")
    return folder


def test_hosts_and_channels_of_one_content_share_one_copy(tmp_path, data):
    uri = f"file://{data}"
    hosts = staged(tmp_path, channel("train", uri), channel("eval", uri), hosts=2)
    copies = {
        (hosts / host / "input/data" / name / "b").stat().st_ino
        for host in ("algo-1", "algo-2")
        for name in ("train", "eval")
    }
    assert len(copies) == 1
    assert copies != {(data / "b").stat().st_ino}
    assert files(hosts / "algo-2/input/data/train") == {"b": "B", "deep/a": "A"}


@pytest.mark.parametrize("seed", [None, 7])
def test_a_machine_with_one_host_of_several_gets_and_copies_that_host_s_shard(tmp_path, seed):
    for number in range(10):
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / f"part-{number}").write_text("x")
    wanted = channel("train", f"file://{tmp_path / 'data'}")
    wanted["DataSource"]["S3DataSource"]["S3DataDistributionType"] = "ShardedByS3Key"
    if seed:
        wanted["ShuffleConfig"] = {"Seed": seed}
    together = staged(tmp_path / "one", wanted, hosts=3)
    for host in ("algo-1", "algo-2", "algo-3"):
        alone = staged(tmp_path / host, wanted, hosts=3, on_machine=host)
        assert [path.name for path in alone.iterdir()] == [host]
        found = sorted(files(alone / host / "input/data/train"))
        assert found == sorted(files(together / host / "input/data/train"))
        assert len(files(tmp_path / host / "channels")) == len(found)


def test_files_of_a_shared_file_system_are_linked(tmp_path, data):
    hosts = staged(tmp_path, channel("train", f"file://{data}"), hosts=2, on_machine="algo-2", links_files=True)
    train = hosts / "algo-2/input/data/train"
    assert files(train) == {"b": "B", "deep/a": "A"}
    assert (train / "deep" / "a").readlink() == data / "deep" / "a"


def test_shared_files_are_read_only_and_folders_are_the_hosts_own(tmp_path, data):
    hosts = staged(tmp_path, channel("train", f"file://{data}"), hosts=2)
    mine, others = (hosts / host / "input/data/train" for host in ("algo-1", "algo-2"))
    assert stat.S_IMODE((mine / "b").stat().st_mode) == 0o444
    (mine / "b").unlink()
    (mine / "b").write_text("mine")
    (mine / "new").write_text("")
    assert files(others) == files(data) == {"b": "B", "deep/a": "A"}


def test_links_in_the_input_are_followed_and_rings_of_them_end(tmp_path, data):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "c").write_text("C")
    (data / "link").symlink_to(outside)
    (data / "file").symlink_to(outside / "c")
    (data / "deep" / "ring").symlink_to(data)
    hosts = staged(tmp_path, channel("train", f"file://{data}"))
    assert files(hosts / "algo-1/input/data/train") == {"b": "B", "deep/a": "A", "link/c": "C", "file": "C"}


def test_a_dangling_link_is_told(tmp_path, data):
    (data / "gone").symlink_to(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"channel 'train', file://.*gone"):
        staged(tmp_path, channel("train", f"file://{data}"))


def test_a_pipe_in_the_input_blocks_no_reader(tmp_path, data):
    os.mkfifo(data / "pipe")
    hosts = staged(tmp_path, channel("train", f"file://{data}"))
    assert files(hosts / "algo-1/input/data/train") == {"b": "B", "deep/a": "A"}


def test_a_shuffled_shard_is_another_deal_of_the_same_files(tmp_path, data):
    for number in range(20):
        (data / f"part-{number:02}").write_text("")
    source = f"file://{data}"
    plain = staged(tmp_path / "1", channel("train", source, "ShardedByS3Key"), hosts=2)
    seeded = staged(tmp_path / "2", channel("train", source, "ShardedByS3Key", ShuffleConfig={"Seed": 7}), hosts=2)
    again = staged(tmp_path / "3", channel("train", source, "ShardedByS3Key", ShuffleConfig={"Seed": 7}), hosts=2)
    assert files(seeded / "algo-1") == files(again / "algo-1") != files(plain / "algo-1")
    assert files(seeded / "algo-1").keys() | files(seeded / "algo-2").keys() == (
        files(plain / "algo-1").keys() | files(plain / "algo-2").keys()
    )


def tree(folder, **content):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in content.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def read(file):
    with file.open() as opened:
        return opened.read().decode()


def test_the_first_host_wins_a_clash_and_every_loss_is_told(tmp_path):
    one = tree(tmp_path / "1", same="1", only1="1", folder__x="1", thing="1")
    two = tree(tmp_path / "2", same="2", only2="2", folder__x="2", folder__y="2", thing__z="2")
    collected = artifacts.collect_files("model", [Sandbox("algo-1", one), Sandbox("algo-2", two)], "")
    found = {name: read(file) for name, file in collected.files.items() if not file.is_directory}
    assert found == {"same": "1", "only1": "1", "only2": "2", "folder/x": "1", "folder/y": "2", "thing": "1"}
    assert collected.notes == [
        "model: algo-2's 'folder/x' is left out: algo-1 has 'folder/x' too",
        "model: algo-2's 'same' is left out: algo-1 has 'same' too",
        "model: algo-2's 'thing' is left out: algo-1 has 'thing' too",
        "model: algo-2's 'thing/z' is left out: algo-1 has 'thing' too",
    ]


def test_what_cannot_be_an_artifact_is_left_out_and_told(tmp_path):
    folder = tree(tmp_path / "model", good="g")
    (folder / "best").symlink_to(folder / "good")
    (folder / "gone").symlink_to("nowhere")
    (folder / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    collected = artifacts.collect_files("model", [Sandbox("algo-1", folder)], "")
    assert sorted(collected.files) == ["best", "good"]
    assert [note.split(":")[1].strip() for note in collected.notes] == [
        "algo-1's 'gone' is left out",
        "algo-1's 'out' is left out",
        "algo-1's 'pipe' is left out",
    ]


def test_an_archive_has_plain_names_modes_and_no_owner(tmp_path, hostile_name):
    folder = tree(tmp_path / "model", run="#!")
    (folder / "run").chmod(0o755)
    (folder / "empty").mkdir()
    (folder / hostile_name).write_text("content")
    artifacts.pack_archive(artifacts.collect_files("model", [Sandbox("algo-1", folder)], ""), tmp_path / "model.tar.gz")
    with tarfile.open(tmp_path / "model.tar.gz") as tar:
        members = {member.name: member for member in tar.getmembers()}
        assert sorted(members) == sorted(["empty", "run", hostile_name])
        assert members["empty"].isdir()
        assert members["run"].mode == 0o755
        assert {(member.uid, member.uname) for member in members.values()} == {(0, "")}
        assert tar.extractfile(hostile_name).read() == b"content"


def test_a_delivery_replaces_what_was_there_whole(tmp_path):
    (tmp_path / "artifact").write_text("new")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "artifact").write_text("old")
    with (tmp_path / "artifact").open("rb") as file:
        assert artifacts.deliver_file(file, f"file://{tmp_path}/out", "artifact", ChangedDirectories())
    assert (tmp_path / "out" / "artifact").read_text() == "new"
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["artifact"]


def test_an_artifact_that_is_in_its_place_already_stays(tmp_path):
    (tmp_path / "artifact").write_text("new")
    with (tmp_path / "artifact").open("rb") as file:
        assert not artifacts.deliver_file(file, f"file://{tmp_path}", "artifact", ChangedDirectories())
    assert (tmp_path / "artifact").read_text() == "new"
