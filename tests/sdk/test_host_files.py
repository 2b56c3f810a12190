"""What is read of a host's tree: a container's links lead nowhere but below its /opt/ml."""

import os

import pytest
from fakes import link_chains

from scriptmode._core.spec.training_job import Output
from scriptmode.errors import DataError
from scriptmode_local._opt_ml.opt_ml import Sandbox
from scriptmode_local._outputs import packed_artifacts
from scriptmode_local._outputs.checkpoints import CheckpointSync
from scriptmode_runtime.contract import FAILURE_FILE_LIMIT


@pytest.fixture
def secret(tmp_path):
    (tmp_path / "secret").write_text("root:$6$of this machine")
    return tmp_path / "secret"


@pytest.fixture
def container(tmp_path):
    host = Sandbox("algo-1", tmp_path / "hosts" / "algo-1", root="/opt/ml")
    for folder in ("model", "output/data", "checkpoints"):
        (host.base / folder).mkdir(parents=True)
    return host


def packed(host, root):
    tree = packed_artifacts.collect_files(root, [host], root)
    found = {}
    for name, file in tree.files.items():
        if not file.is_directory:
            with file.open() as opened:
                found[name] = opened.read().decode()
    return found, tree.notes


def test_stacks_are_asked_for_in_the_hosts_own_directory_alone(container, tmp_path):
    assert not container.request_stacks()
    (container.base / "stacks").symlink_to(tmp_path)
    (tmp_path / "answer").write_text("of this machine")
    assert not container.request_stacks()
    assert container.read_stacks() is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answer", "hosts"]
    (container.base / "stacks").unlink()
    (container.base / "stacks").mkdir()
    (container.base / "stacks" / "answer").write_text("an earlier one")
    assert container.request_stacks()
    assert container.read_stacks() is None
    (container.base / "stacks" / "request").unlink()
    os.mkfifo(container.base / "stacks" / "request")
    assert not container.request_stacks()


def test_links_of_a_container_that_lead_to_this_machine_are_left_out(container, secret):
    model = container.model
    (model / "weights").write_text("w")
    chain = link_chains.write_folder(model, 3)
    for name, target in (
        ("absolute", str(secret)),
        ("relative", "../../../secret"),
        ("chain", f"{chain}/secret"),
        ("up", f"{chain}/hosts/../secret"),
        ("shadow", "/etc/shadow"),
        ("through", "chain"),
        ("inside", "/opt/ml/model/weights"),
    ):
        (model / name).symlink_to(target)
    found, notes = packed(container, "model")
    assert found == {"weights": "w", "inside": "w"}
    out = [note.split("'")[2] for note in notes if "is a link out of /opt/ml" in note]
    assert set(out) >= {"absolute", "relative", "chain", "up", "shadow", "through"}


def test_the_directory_that_a_container_replaced_by_a_link_is_not_taken(container, tmp_path, secret):
    container.model.rmdir()
    container.model.symlink_to(tmp_path)
    told = ["model: files of algo-1 are left out: the directory was replaced by a link or a file"]
    assert packed(container, "model") == ({}, told)
    (container.base / "output" / "data").rmdir()
    (container.base / "output").rmdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "file").write_text("of this machine")
    (container.base / "output").symlink_to(tmp_path)
    assert packed(container, "output/data")[0] == {}
    assert packed_artifacts.is_model_empty([container])


@pytest.mark.parametrize("target", ["absolute", "relative", "chain", "fifo", "folder", "parent"])
def test_a_failure_file_that_is_something_else_says_nothing(container, secret, target):
    (secret.parent / "failure").write_text("of this machine")
    if target == "fifo":
        os.mkfifo(container.failure)
    elif target == "folder":
        container.failure.mkdir()
    elif target == "parent":
        (container.base / "output").rename(container.base / "aside")
        (container.base / "output").symlink_to(secret.parent)
    else:
        chain = link_chains.write_folder(container.base / "output", 3)
        container.failure.symlink_to(
            {"absolute": str(secret), "relative": "../../../secret", "chain": f"{chain}/secret"}[target]
        )
    assert container.read_failure() == ""


def test_a_failure_file_is_read_no_further_than_its_limit(container):
    with container.failure.open("w") as file:
        file.write("wörds " * 300)
        file.truncate(2**40)
    assert container.read_failure() == ("wörds " * 300)[:FAILURE_FILE_LIMIT].strip()
    (container.base / "said").write_text("by a link")
    container.failure.unlink()
    container.failure.symlink_to("/opt/ml/said")
    assert container.read_failure() == "by a link"


def test_a_checkpoint_that_becomes_a_link_to_this_machine_is_not_delivered(container, tmp_path, secret):
    folder = container.checkpoints(Output())
    (folder / "state").write_text("s")
    keeper = CheckpointSync(Output(checkpoint_uri=f"file://{tmp_path}/kept"), [container], tmp_path / "record.json")
    found = keeper._trees()
    (folder / "state").unlink()
    (folder / "state").symlink_to(f"{link_chains.write_folder(folder, 3)}/secret")
    with pytest.raises(DataError, match="'state' became a link out of its directory"):
        keeper._put("algo-1", "state", packed_artifacts.ChangedDirectories())
    with pytest.raises(OSError):
        found["algo-1"].files["state"].open()
    keeper.finish(lambda _: None)
    assert list((tmp_path / "kept").glob("state")) == []


def test_a_link_out_of_the_place_of_checkpoints_is_not_restored(container, tmp_path, secret):
    kept = tmp_path / "kept"
    (kept / "deep").mkdir(parents=True)
    (kept / "deep" / "state").write_text("s")
    (kept / "latest").symlink_to("deep/state")
    (kept / "gone").symlink_to("nowhere")
    output = Output(checkpoint_uri=f"file://{kept}")
    CheckpointSync(output, [container], tmp_path / "record.json").restore()
    folder = container.checkpoints(Output())
    assert {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()} == {
        "state": "s",
        "latest": "s",
    }
    (kept / "stolen").symlink_to(f"{link_chains.write_folder(kept, 1)}/secret")
    with pytest.raises(DataError, match="'stolen'; put the file there"):
        CheckpointSync(output, [container], tmp_path / "record.json").restore()
    assert not (folder / "stolen").exists()


def test_links_of_a_process_are_this_machines_own(tmp_path, secret):
    host = Sandbox("algo-1", tmp_path / "algo-1")
    host.base.mkdir()
    (tmp_path / "large disk").mkdir()
    (tmp_path / "large disk" / "weights").write_text("w")
    host.model.symlink_to(tmp_path / "large disk")
    (tmp_path / "large disk" / "link").symlink_to(secret)
    assert packed(host, "model") == ({"weights": "w", "link": secret.read_text()}, [])


def test_a_link_at_the_place_of_a_delivery_is_replaced_and_not_written_through(container, tmp_path, secret):
    (tmp_path / "kept").mkdir()
    packed_artifacts.draft_of(tmp_path / "kept" / "state").symlink_to(secret)
    (container.checkpoints(Output()) / "state").write_text("s")
    CheckpointSync(Output(checkpoint_uri=f"file://{tmp_path}/kept"), [container], tmp_path / "r").finish(print)
    assert secret.read_text().startswith("root:")
    assert (tmp_path / "kept" / "state").read_text() == "s"
