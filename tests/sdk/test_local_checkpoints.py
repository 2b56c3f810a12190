"""Which host's checkpoint is kept, and what happens to one that cannot be."""

import os

import pytest

from scriptmode.errors import DataError
from scriptmode.platforms.local.outputs.checkpoints import CheckpointSync
from scriptmode.platforms.opt_ml import Sandbox
from scriptmode.spec.training_job import Output


@pytest.fixture
def hosts(tmp_path):
    sandboxes = [Sandbox(name, tmp_path / name) for name in ("algo-1", "algo-2")]
    for sandbox in sandboxes:
        sandbox.checkpoints(Output()).mkdir(parents=True)
    return sandboxes


def sync(tmp_path, hosts):
    (tmp_path / "kept").mkdir(exist_ok=True)
    return CheckpointSync(Output(checkpoint_uri=f"file://{tmp_path}/kept"), hosts, tmp_path / "record.json")


def write(host, name, text, *, moment):
    path = host.checkpoints(Output()) / name
    path.write_text(text)
    os.utime(path, (moment, moment))


def finished(made):
    said = []
    made.finish(said.append)
    return said


def kept(tmp_path):
    return {path.name: path.read_text() for path in (tmp_path / "kept").iterdir()}


def test_the_first_host_that_wrote_a_name_keeps_it(tmp_path, hosts):
    write(hosts[0], "both", "1", moment=1)
    write(hosts[1], "both", "2", moment=2)
    write(hosts[1], "own", "2", moment=3)
    made = sync(tmp_path, hosts)
    assert finished(made) == ["checkpoints: algo-2's 'both' is left out: algo-1 has 'both' too"]
    assert kept(tmp_path) == {"both": "1", "own": "2"}


def test_what_only_another_host_changed_since_it_was_restored_is_kept(tmp_path, hosts):
    made = sync(tmp_path, hosts)
    (tmp_path / "kept" / "state").write_text("old")
    made.restore()
    assert [(host.checkpoints(Output()) / "state").read_text() for host in hosts] == ["old", "old"]
    write(hosts[1], "state", "new", moment=5)
    assert finished(made) == []
    assert kept(tmp_path) == {"state": "new"}


@pytest.mark.parametrize("content", ["", "[]", '{"more": 1}', '{"signatures": {"algo-1": 5}}', "[" * 100_000])
def test_a_record_of_copies_that_cannot_be_read_has_all_copied_again(tmp_path, hosts, content):
    write(hosts[0], "state", "1", moment=1)
    made = sync(tmp_path, hosts)
    assert finished(made) == []
    (tmp_path / "record.json").write_text(content)
    (tmp_path / "kept" / "state").unlink()
    assert finished(made) == []
    assert kept(tmp_path) == {"state": "1"}


def test_a_name_that_looks_encoded_is_a_name(tmp_path, hosts):
    write(hosts[0], "%2e%2e", "1", moment=1)
    assert finished(sync(tmp_path, hosts)) == []
    assert kept(tmp_path) == {"%2e%2e": "1"}
    assert not (tmp_path / "1").exists()


def test_what_was_written_after_one_that_cannot_be_copied_waits_for_it(tmp_path, hosts):
    made = sync(tmp_path, hosts)
    write(hosts[0], "data", "1", moment=1)
    write(hosts[0], "index", "of data", moment=2)
    (tmp_path / "kept" / ".data.part").mkdir()
    with pytest.raises(DataError, match="kept/data: "):
        finished(made)
    assert not (tmp_path / "kept" / "index").exists()
    (tmp_path / "kept" / ".data.part").rmdir()
    assert finished(made) == []
    assert kept(tmp_path) == {"data": "1", "index": "of data"}


def test_a_draft_of_a_job_that_was_killed_is_not_a_checkpoint(tmp_path, hosts):
    made = sync(tmp_path, hosts)
    (tmp_path / "kept" / ".state.part").write_text("half")
    made.restore()
    assert list(hosts[0].checkpoints(Output()).iterdir()) == []


def test_a_link_out_of_a_containers_tree_is_left_out(tmp_path):
    (tmp_path / "secret").write_text("of this machine")
    host = Sandbox("algo-1", tmp_path / "algo-1", root="/opt/ml")
    folder = host.checkpoints(Output())
    folder.mkdir(parents=True)
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "real").write_text("r")
    (folder / "inside").symlink_to("/opt/ml/checkpoints/real")
    (folder / "beside").symlink_to("real")
    assert finished(sync(tmp_path, [host])) == ["checkpoints: algo-1's 'out' is left out: it is a link out of /opt/ml"]
    assert kept(tmp_path) == {"real": "r", "inside": "r", "beside": "r"}
