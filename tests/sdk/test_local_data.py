"""Staging of inputs, collecting and fetching of models, output and checkpoints, on real files."""

import os
import resource
import tarfile
import threading
import time
from dataclasses import replace

import pytest
from fakes.host_folders import write_files
from fakes.local_jobs import channel, request_for

from scriptmode._core.request.parse import parse_request
from scriptmode._core.spec.training_job import InstanceGroup, Output, Resources
from scriptmode._results.artifacts import download
from scriptmode.errors import DataError
from scriptmode_local import LocalPlatform
from scriptmode_local._data import file_copy
from scriptmode_local._data.durable import ChangedDirectories
from scriptmode_local._data.replaced_files import ReplacedFiles
from scriptmode_local._data.staging import StagingArea
from scriptmode_local._data.stores import Stores
from scriptmode_local._inputs import file_mode
from scriptmode_local._opt_ml.opt_ml import Sandbox
from scriptmode_local._outputs import checkpoints, packed_artifacts
from scriptmode_local._outputs.checkpoints import CheckpointSync
from scriptmode_runtime import contract

MIRRORED = {contract.MULTI_WORKER_MIRRORED_ENABLED: "true"}
GROUPS, ROLES = contract.DISTRIBUTION_INSTANCE_GROUPS, contract.MULTI_WORKER_MIRRORED_ROLES


def sandboxes(folder, count=1):
    return [Sandbox(f"algo-{number}", folder / f"algo-{number}") for number in range(1, count + 1)]


def staged(folder, *wanted, hosts=1, on_machine=None, links_files=False):
    """Stage for all hosts, or for the one of them that is on this machine."""
    job = parse_request(request_for("job", hosts=hosts, channels=wanted))
    here = [each for each in sandboxes(folder / "hosts", hosts) if on_machine in (None, each.host)]
    area = StagingArea(folder / "channels", links_files=links_files)
    file_mode.stage_channels(job, here, Stores(), area, progress=file_mode.StagingProgress(job))
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


def tree(folder, **content):
    folder.mkdir(parents=True, exist_ok=True)
    return write_files(folder, {name.replace("__", "/"): text for name, text in content.items()})


def test_what_cannot_be_an_artifact_is_left_out_with_a_note(tmp_path):
    folder = tree(tmp_path / "model", good="g")
    (folder / "best").symlink_to(folder / "good")
    (folder / "gone").symlink_to("nowhere")
    (folder / "out").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    collected = packed_artifacts.collect_files("model", [Sandbox("algo-1", folder)], "")
    assert sorted(collected.files) == ["best", "good"]
    assert [note.split(":")[1].strip() for note in collected.notes] == [
        "algo-1's 'gone' is left out", "algo-1's 'out' is left out", "algo-1's 'pipe' is left out",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "content", "told"),
    [
        ({}, ("1", "1", "1"), ""),
        ({}, ("1", "2", "1"), "algo-2"),
        (MIRRORED, ("1", "22", "3"), ""),
        ({**MIRRORED, GROUPS: '["a", "c"]'}, ("1", "2", "3"), "algo-2"),
        ({**MIRRORED, ROLES: '{"worker": ["a", "c"], "chief": "b"}'}, ("2", "1", "3"), ""),
        ({**MIRRORED, ROLES: '{"worker": ["b", "c"], "evaluator": "a"}'}, ("2", "1", "3"), "algo-1"),
    ],
)
def test_hosts_that_train_together_save_copies_of_which_the_chiefs_counts(tmp_path, parameters, content, told):
    groups = tuple(InstanceGroup(name, "local_process", 1) for name in "abc")
    asked = parse_request(request_for("job-1", output=f"file://{tmp_path}/out"))
    job = replace(asked, resources=Resources(None, None, groups), hyperparameters=parameters)
    hosts = sandboxes(tmp_path, 3)
    for host, text in zip(hosts, content):
        tree(host.model, weights=text)
    notes = []
    packed_artifacts.publish_artifacts(job, hosts, tmp_path / "packed", with_model=True, say=notes.append)
    with tarfile.open(tmp_path / "out" / "job-1" / "output" / "model.tar.gz") as archive:
        assert archive.extractfile("weights").read() == b"1"
    assert [note.split("'")[0] for note in notes] == ([f"model: {told}"] if told else [])


def test_more_files_than_can_be_unpacked_are_not_packed(tmp_path, monkeypatch):
    folder = tree(tmp_path / "host" / "model", a="1", b__c="2")
    request = parse_request(request_for("job-1", output=f"file://{tmp_path}/out"))
    host = Sandbox("algo-1", folder.parent)
    monkeypatch.setattr(packed_artifacts, "MOST_MEMBERS", 2)
    with pytest.raises(DataError, match="model.tar.gz would hold 3 files and directories, and the most is 2"):
        packed_artifacts.publish_artifacts(request, [host], tmp_path / "packed", with_model=True, say=print)
    assert not (tmp_path / "out" / "job-1" / "output" / "model.tar.gz").exists()
    monkeypatch.setattr(packed_artifacts, "MOST_MEMBERS", 3)
    packed_artifacts.publish_artifacts(request, [host], tmp_path / "packed", with_model=True, say=print)


def test_an_archive_has_plain_names_modes_and_no_owner(tmp_path, hostile_name):
    folder = tree(tmp_path / "model", run="#!")
    (folder / "run").chmod(0o755)
    (folder / "empty").mkdir()
    (folder / hostile_name).write_text("content")
    packed_artifacts.pack_archive(
        packed_artifacts.collect_files("model", [Sandbox("algo-1", folder)], ""), tmp_path / "model.tar.gz"
    )
    with tarfile.open(tmp_path / "model.tar.gz") as tar:
        members = {member.name: member for member in tar.getmembers()}
        assert sorted(members) == sorted(["empty", "run", hostile_name])
        assert members["empty"].isdir()
        assert members["run"].mode == 0o755
        assert {(member.uid, member.uname) for member in members.values()} == {(0, "")}
        assert tar.extractfile(hostile_name).read() == b"content"


def test_an_artifact_replaces_an_old_one_whole_and_stays_where_it_is_already(tmp_path):
    (tmp_path / "artifact").write_text("new")
    out = tree(tmp_path / "out", artifact="older")
    with (tmp_path / "artifact").open("rb") as file:
        assert packed_artifacts.deliver_file(file, f"file://{tmp_path}/out", "artifact", ChangedDirectories())
        assert {path.name: path.read_text() for path in out.iterdir()} == {"artifact": "new"}
        assert not packed_artifacts.deliver_file(file, f"file://{tmp_path}", "artifact", ChangedDirectories())
    assert (tmp_path / "artifact").read_text() == "new"


@pytest.fixture
def hosts(tmp_path):
    sandboxes = [Sandbox(name, tmp_path / name) for name in ("algo-1", "algo-2")]
    for sandbox in sandboxes:
        sandbox.checkpoints(Output()).mkdir(parents=True)
    return sandboxes


def sync(tmp_path, hosts, copies=frozenset()):
    (tmp_path / "kept").mkdir(exist_ok=True)
    output = Output(checkpoint_uri=f"file://{tmp_path}/kept")
    return CheckpointSync(output, hosts, tmp_path / "record.json", copies=copies)


def write(host, name, text, *, moment):
    path = host.checkpoints(Output()) / name
    path.write_text(text)
    os.utime(path, (moment, moment))


def finished(made):
    notes = []
    made.finish(notes.append)
    return notes


def kept(tmp_path):
    return {path.name: path.read_text() for path in (tmp_path / "kept").iterdir()}


def test_the_first_host_that_wrote_a_name_keeps_it(tmp_path, hosts):
    write(hosts[0], "both", "1", moment=1)
    write(hosts[1], "both", "2", moment=2)
    write(hosts[1], "own", "2", moment=3)
    made = sync(tmp_path, hosts)
    assert finished(made) == ["checkpoints: algo-2's 'both' is left out: algo-1 has 'both' too"]
    assert kept(tmp_path) == {"both": "1", "own": "2"}
    assert finished(sync(tmp_path, hosts, frozenset(("algo-1", "algo-2")))) == []


def test_what_only_another_host_changed_since_it_was_restored_is_kept_also_once_it_is_deleted(tmp_path, hosts):
    made = sync(tmp_path, hosts)
    (tmp_path / "kept" / "state").write_text("old")
    made.restore()
    assert [(host.checkpoints(Output()) / "state").read_text() for host in hosts] == ["old", "old"]
    write(hosts[1], "state", "new", moment=5)
    assert (finished(made), kept(tmp_path)) == ([], {"state": "new"})
    for host in hosts:
        (host.checkpoints(Output()) / "state").unlink()
    assert (finished(made), kept(tmp_path)) == ([], {"state": "new"})


def test_a_file_that_is_replaced_all_the_time_is_copied_and_one_that_is_written_in_place_at_the_end(
    tmp_path, hosts, monkeypatch
):
    monkeypatch.setattr(checkpoints, "REST_SECONDS", 0.2)
    made = sync(tmp_path, hosts)
    folder = hosts[0].checkpoints(Output())
    # The daemon thread ends with the tests.
    threading.Thread(target=made.run, daemon=True).start()
    deadline = time.monotonic() + 60
    while "replaced" not in kept(tmp_path) and time.monotonic() < deadline:
        for name in ("draft", "in-place"):
            (folder / name).write_text(str(time.monotonic()))
        (folder / "draft").rename(folder / "replaced")
        time.sleep(0.03)
    assert kept(tmp_path).keys() == {"replaced"}


def test_a_draft_that_was_renamed_is_not_copied_under_its_first_name(tmp_path):
    replaced, draft = ReplacedFiles(), tmp_path / "draft"

    def write_and_look():
        draft.write_text("x")
        return replaced.look("draft", draft.stat().st_ino, lambda: draft.open("rb"))

    for _ in range(4):
        assert write_and_look() is None
        draft.rename(tmp_path / "checkpoint")
    write_and_look()
    draft.unlink()
    with write_and_look() as earlier:
        assert earlier.read() == b"x"
    draft.unlink()
    replaced.keep([])


@pytest.mark.parametrize("content", ["", "[]", '{"more": 1}', '{"signatures": {"algo-1": 5}}', "[" * 100_000])
def test_a_record_of_copies_that_cannot_be_read_has_all_copied_again(tmp_path, hosts, content):
    write(hosts[0], "state", "1", moment=1)
    made = sync(tmp_path, hosts)
    assert finished(made) == []
    (tmp_path / "record.json").write_text(content)
    (tmp_path / "kept" / "state").unlink()
    assert finished(made) == []
    assert kept(tmp_path) == {"state": "1"}


def test_what_was_written_after_one_that_cannot_be_copied_waits_for_it(tmp_path, hosts):
    made = sync(tmp_path, hosts)
    write(hosts[0], "data", "1" * 9000, moment=1)
    write(hosts[0], "index", "of data", moment=2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, resource.RLIM_INFINITY))
    try:
        with pytest.raises(DataError, match="kept/data: .*too large"):
            finished(made)
        assert kept(tmp_path) == {}
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert finished(made) == []
    assert kept(tmp_path) == {"data": "1" * 9000, "index": "of data"}


def test_a_checkpoint_that_became_another_kind_holds_up_no_other(tmp_path, hosts):
    made = sync(tmp_path, hosts)
    tree(tmp_path / "kept", was_a_folder__step="1", was_a_file="1")
    tree(hosts[0].checkpoints(Output()), was_a_folder="2", was_a_file__step="2", later="2")
    with pytest.raises(DataError, match="kept/was_a_"):
        finished(made)
    assert (tmp_path / "kept" / "later").read_text() == "2"


def test_files_whose_names_are_long_or_like_drafts_are_copied_and_restored(tmp_path, hosts):
    files = dict.fromkeys(("x" * 255, ".step.part", ".half", ".half.part"), "1")
    made = sync(tmp_path, hosts)
    tree(hosts[0].checkpoints(Output()), **files)
    assert finished(made) == []
    assert kept(tmp_path) == files
    made.restore()
    assert {path.name for path in hosts[1].checkpoints(Output()).iterdir()} == files.keys()


@pytest.fixture
def stored(tmp_path):
    (tmp_path / "output").mkdir()
    return tmp_path / "output" / "model.tar.gz"


def fetched(stored, folder):
    try:
        return download(LocalPlatform(), f"file://{stored}", folder, extract=True)
    finally:
        assert sorted(path.name for path in folder.parent.iterdir()) in (["output"], ["model", "output"])


@pytest.mark.prompt
def test_a_fifo_in_place_of_a_model_is_refused_at_once(stored, tmp_path):
    os.mkfifo(stored)
    with pytest.raises(DataError, match=r"model\.tar\.gz' cannot be read: it is not a regular file"):
        fetched(stored, tmp_path / "model")
    with pytest.raises(OSError, match="it is not a regular file"):
        file_copy.copy_regular_file(stored, tmp_path / "copy")


@pytest.mark.parametrize("names", [[], ["one"], ["one", "two"]], ids=len)
def test_a_directory_in_place_of_an_archive_is_refused(stored, tmp_path, names):
    stored.mkdir()
    for name in names:
        (stored / name).touch()
    with pytest.raises(DataError, match=r"^the model file://\S+ is a directory, not an archive; put"):
        fetched(stored, tmp_path / "model")
