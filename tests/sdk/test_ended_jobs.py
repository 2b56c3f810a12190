"""A list of jobs reads the states of those alone that it has not read to their ends before."""

import errno
import json
import os
import shutil
import time
import zlib
from dataclasses import replace

import pytest
from fakes.local_jobs import JOB, RESOURCES
from fakes.processes import until

from scriptmode import RequestError, UnreadableJobError
from scriptmode._core.request.parse import parse_request
from scriptmode._core.spec.service_values import ANY_JOB, JobFilter
from scriptmode.errors import FAILED_DISK
from scriptmode_local import LocalPlatform
from scriptmode_local._data import regular_files
from scriptmode_local._store.state import starting_state


def ended(store, name, created=0.0, secondary="Completed"):
    state = starting_state(name, f"arn/{name}", created).with_status("Downloading", created + 1)
    job = replace(JOB, request=replace(JOB.request, name=name))
    with store.create(job, state.with_status(secondary, created + 9)) as (folder, _):
        return folder


def listed(store, which=ANY_JOB):
    jobs = LocalPlatform(data_dir=store.data_dir).list(which)
    return [(job["TrainingJobName"], job["TrainingJobStatus"]) for job in jobs]


def kept(store):
    return {name: row for name, row in json.loads(store.ended_jobs.read_text().splitlines()[0]).items() if name}


def test_a_known_jobs_state_is_not_read_again(store):
    state = ended(store, "a", 1.0).path / "state.json"
    ended(store, "b", 2.0, "Failed")
    platform = LocalPlatform(data_dir=store.data_dir)
    first = platform.list()
    with pytest.raises(RequestError, match="job a is one of this machine, which has no ProfilerConfig to change"):
        platform.update("a", ProfilerConfig={"DisableProfiler": True})
    assert [job["TrainingJobName"] for job in first] == ["b", "a"]
    assert set(kept(store)) == {"a", "b"}
    times = state.stat().st_atime_ns, state.stat().st_mtime_ns
    with state.open("r+b") as file:
        file.truncate(1)
    os.utime(state, ns=times)
    assert platform.list() == first


def test_a_list_looks_at_ended_jobs_again_once_a_job_comes_or_goes(store):
    old, new = ended(store, "old", 1.0), ended(store, "new", 2.0)
    until(store.version)
    assert listed(store) == [("new", "Completed"), ("old", "Completed")]
    (new.path / "state.json").write_text("{")
    assert listed(store, JobFilter(limit=1)) == [("new", "Completed")]
    shutil.rmtree(old.path)
    ended(store, "old", time.time() + 60.0, "Failed")
    assert {status for _, status in listed(store)} == {"Failed", "Unreadable"}


def test_a_job_that_was_deleted_and_made_again_is_the_new_one(store):
    shutil.rmtree(ended(store, "a").path)
    ended(store, "b")
    assert listed(store) == [("b", "Completed")]
    shutil.rmtree(store.folder("b").path)
    ended(store, "b", 5.0, "Failed")
    assert listed(store) == [("b", "Failed")]
    shutil.rmtree(store.folder("b").path)
    assert listed(store) == []
    assert kept(store) == {}


@pytest.mark.parametrize("content", ["", "{}", "{\n 0", f"{{}}\n{zlib.crc32(b'{}'):08x}", "[" * 100_000])
def test_a_broken_file_or_one_without_columns_is_created_again(store, content):
    ended(store, "a")
    store.ended_jobs.write_text(content)
    assert listed(store) == [("a", "Completed")]
    assert kept(store)["a"][5:] == [0.0, 9.0, "Completed", 9.0, 1, "", "", None, "", None]


@pytest.mark.parametrize("value", [-1.5, 1e300])
def test_the_last_value_of_a_metric_is_known_without_the_log(store, value):
    definitions = {"MetricDefinitions": [{"Name": "loss", "Regex": "loss=(.+)"}]}
    with_metric = {"TrainingJobName": "a", "ResourceConfig": RESOURCES, "AlgorithmSpecification": definitions}
    job = replace(JOB, request=parse_request(with_metric))
    with store.create(job, starting_state("a", "arn/a", 0.0).with_status("Completed", 9.0)) as (folder, _):
        folder.log("algo-1").write_text(f"loss={value}\n")
    platform = LocalPlatform(data_dir=store.data_dir)
    first = platform.list()
    folder.log("algo-1").write_text("")
    assert platform.list() == first
    assert first[0]["LastMetric"] == {"MetricName": "loss", "Value": value}


def test_a_changed_digit_is_found_by_the_checksum(store):
    ended(store, "a")
    assert listed(store) == [("a", "Completed")]
    rows = kept(store)
    store.ended_jobs.write_text(store.ended_jobs.read_text().replace("9.0", "8.0", 1))
    assert LocalPlatform(data_dir=store.data_dir).list()[0]["LastModifiedTime"].timestamp() == 9.0
    assert kept(store) == rows


def test_a_job_that_goes_on_is_asked_each_time(store):
    job = replace(JOB, request=replace(JOB.request, name="a"))
    with store.create(job, starting_state("a", "arn/a", 0.0)) as (folder, _):
        assert listed(store) == [("a", "InProgress")]
        assert not store.ended_jobs.exists()
        folder.write_state(folder.read_state().with_status("Failed", 3.0))
        assert listed(store) == [("a", "Failed")]


def test_a_folder_without_a_state_is_listed_if_a_job_can_be_called_so(store):
    ended(store, "a", 5.0)
    (store.jobs / "empty").mkdir()
    (store.jobs / "somebody's own").mkdir()
    (store.jobs / "a-file").touch()
    assert listed(store) == [("empty", "Unreadable"), ("a", "Completed")]
    with pytest.raises(UnreadableJobError, match="'empty' cannot be read: .*/empty/job.json: No such file") as raised:
        LocalPlatform(data_dir=store.data_dir).describe("empty")
    assert str(raised.value).endswith("delete it: scriptmode rm empty")


BROKEN = {
    "half": "{", "without its arn": {"arn": None}, "no transitions": {"transitions": []},
    "a status": {"transitions": [{"status": "Ended", "message": "", "started": 1.0}]},
    "a field that nobody knows": {"more": 1},
}  # fmt: skip


@pytest.mark.parametrize("change", BROKEN.values(), ids=list(BROKEN))
def test_a_job_whose_state_is_broken_is_listed_as_that_and_says_so(store, change):
    ended(store, "a")
    file = ended(store, "b").path / "state.json"
    file.write_text(change if isinstance(change, str) else json.dumps({**json.loads(file.read_text()), **change}))
    assert sorted(listed(store)) == [("a", "Completed"), ("b", "Unreadable")]
    platform = LocalPlatform(data_dir=store.data_dir)
    (message,) = [job["StatusMessage"] for job in platform.list() if job["TrainingJobName"] == "b"]
    assert message.startswith(f"training job 'b' cannot be read: {file}: ")
    with pytest.raises(UnreadableJobError, match="look at its directory, or delete it: scriptmode rm b") as raised:
        platform.describe("b")
    assert (str(raised.value), raised.value.job_name, raised.value.path) == (message, "b", file)


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
def test_a_job_on_a_disk_that_fails_is_not_to_be_deleted(store, monkeypatch, number):
    file = ended(store, "a").path / "state.json"
    read = regular_files.read_json

    def fail(path):
        if path == file:
            raise OSError(number, os.strerror(number), str(path))
        return read(path)

    monkeypatch.setattr(regular_files, "read_json", fail)
    with pytest.raises(UnreadableJobError) as raised:
        LocalPlatform(data_dir=store.data_dir).describe("a")
    assert f"{file}: {os.strerror(number)}; {FAILED_DISK}" in str(raised.value)


def test_a_job_of_another_user_is_not_to_be_deleted(store, monkeypatch):
    file = ended(store, "b").path / "state.json"
    file.write_text("[]")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with pytest.raises(UnreadableJobError, match="b', which belongs to .*, cannot be .*; ask .* for") as raised:
        LocalPlatform(data_dir=store.data_dir).describe("b")
    assert "scriptmode rm" not in str(raised.value)


def test_a_job_whose_request_is_broken_is_listed_as_that_and_says_so(store):
    ended(store, "a")
    file = ended(store, "b", 5.0).path / "job.json"
    assert listed(store) == [("b", "Completed"), ("a", "Completed")]
    file.write_text("[]")
    # Also where both were listed before, and known.
    assert sorted(listed(store)) == [("a", "Completed"), ("b", "Unreadable")]
    file.unlink()
    assert sorted(listed(store)) == [("a", "Completed"), ("b", "Unreadable")]
    with pytest.raises(UnreadableJobError, match="'b' cannot be read: .*/job.json: "):
        LocalPlatform(data_dir=store.data_dir).describe("b")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{\n "x', "Unterminated string starting at: line 2 column 2 (char 3)"),
        (b'{"x": "\xff"}', "'utf-8' codec can't decode byte 0xff in position 7: invalid start byte"),
        (b'{"x": "\\ud800"}', "'utf-8' codec can't encode character '\\ud800' in position 7: surrogates not allowed"),
    ],
)
def test_what_is_wrong_in_a_damaged_record_is_said(store, content, words):
    file = ended(store, "a").path / "job.json"
    file.write_bytes(content)
    with pytest.raises(UnreadableJobError) as raised:
        LocalPlatform(data_dir=store.data_dir).describe("a")
    assert f"{file}: it is damaged: {words}; look at its directory" in str(raised.value)
