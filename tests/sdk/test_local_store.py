"""The job store: whole or not at all, and fast."""

import copy
import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from fakes.promptness import soon

from scriptmode.data_dir import default_data_dir
from scriptmode.errors import DataError, JobExistsError, JobNotFoundError, UnreadableJobError
from scriptmode.platforms.local import LocalPlatform
from scriptmode.platforms.local.store.job_record import Job
from scriptmode.platforms.local.store.job_store import JobStore
from scriptmode.platforms.local.store.logs import last_lines
from scriptmode.platforms.local.store.state import starting_state
from scriptmode.platforms.local.system.durable import replace_file
from scriptmode.request.fields import FIELDS
from scriptmode.request.parse import parse_request
from scriptmode.spec.training_job import Resources, Script, TrainingJobSpec

RESOURCES = {"InstanceType": "local_process", "InstanceCount": 1}
REQUEST = parse_request({"TrainingJobName": "job", "ResourceConfig": RESOURCES})
JOB = Job(REQUEST, "arn", "us-east-1", "/usr/bin/python3", 120.0)


@pytest.fixture
def store(tmp_path):
    return JobStore(tmp_path / "data")


def test_the_last_lines_of_the_hosts_come_before_the_status_that_follows_them(store):
    seen = []
    with store.create(JOB, starting_state("job", "arn/job", time.time())) as (folder, _):
        folder.log("algo-1").write_text("last words\n")
        folder.write_state(folder.read_state().with_status("Uploading", time.time()))
        events = LocalPlatform(data_dir=store.data_dir).log_events(
            "job", follow=True, on_description=lambda said: seen.append(said["SecondaryStatus"])
        )
        seen.append(next(events).message)
        folder.write_state(folder.read_state().with_status("Completed", time.time()))
        seen += [event.message for event in events]
    assert seen == ["last words", "Uploading", "Completed"]


def made(store, name="job", created=0.0):
    with store.create(JOB, starting_state(name, f"arn/{name}", created)) as (folder, _):
        return folder


def test_a_job_is_read_back_as_it_was_written(store):
    folder = made(store)
    assert folder.read_job() == JOB
    assert folder.read_state() == starting_state("job", "arn/job", 0.0)
    assert store.find("job").path == folder.path


def raises(call):
    try:
        call()
    except UnreadableJobError as error:
        return "job.json" in str(error)
    return False


@pytest.mark.parametrize("path", sorted({row.path for row in FIELDS if not row.path.startswith("Enable")}))
def test_a_damaged_part_of_a_request_is_an_error_for_the_list_and_for_the_job(store, path):
    folder = made(store)
    record = json.loads((folder.path / "job.json").read_text())
    *parents, last = path.split(".")
    damaged = [{**record["request"], path.partition(".")[0]: 5}, copy.deepcopy(record["request"])]
    part = damaged[1]
    for key in parents:
        part = part.setdefault(key, {})
    part[last] = 5
    found = []
    for request in damaged:
        (folder.path / "job.json").write_text(json.dumps({**record, "request": request}))
        found.append(raises(folder.read_job))
        assert raises(folder.read_facts) == found[-1]
    assert found[0]


def test_a_second_job_of_one_name_leaves_nothing_behind(store):
    made(store)
    with pytest.raises(JobExistsError, match="'job'"):
        made(store)
    assert [path.name for path in store.jobs.iterdir()] == ["job"]


def test_a_job_has_an_owner_from_its_first_moment(store):
    with store.create(JOB, starting_state("job", "arn", 0.0)) as (folder, _), folder.try_lock() as is_locked:
        assert not is_locked
    with folder.try_lock() as is_locked:
        assert is_locked


def test_a_reader_never_sees_half_a_state(store):
    folder = made(store)
    long = starting_state("job", "x" * 100_000, 0.0)
    done = threading.Event()

    def write():
        while not done.is_set():
            folder.write_state(long)
            folder.write_state(starting_state("job", "arn", 0.0))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        lengths = {len(folder.read_state().arn) for _ in range(500)}
    finally:
        done.set()
        writer.join()
    assert lengths <= {100_000, 3, 7}


@pytest.mark.parametrize("content", [b"[", b"null", b"[7]", b'[{"new": 1}]'])
def test_progress_that_cannot_be_read_is_none(store, content):
    folder = made(store)
    assert folder.read_progress() == ()
    (folder.path / "progress.json").write_bytes(content)
    assert folder.read_progress() == ()
    (folder.path / "progress.json").unlink()
    (folder.path / "progress.json").mkdir()
    assert folder.read_progress() == ()


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    file = tmp_path / "file"
    replace_file(file, b"old")
    with pytest.raises(TypeError):
        replace_file(file, "no bytes")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.slow
@pytest.mark.prompt
def test_thousands_of_jobs_are_listed_in_a_second_newest_first(store):
    made(store, "job-0")
    for number in range(2000):
        name = f"job-{number}"
        folder = store.jobs / name
        folder.mkdir(exist_ok=True)
        state = starting_state(name, "arn", float(number)).with_status("Failed", float(number))
        folder.joinpath("state.json").write_text(json.dumps(state.to_json()))
        job = replace(JOB, request=replace(REQUEST, name=name))
        folder.joinpath("job.json").write_text(json.dumps(job.to_json()))
    begun = time.monotonic()
    summaries = LocalPlatform(data_dir=store.data_dir).list()
    soon(time.monotonic() - begun, 1.0)
    assert [summary["TrainingJobName"] for summary in summaries] == [f"job-{number}" for number in range(1999, -1, -1)]
    assert {summary["TrainingJobStatus"] for summary in summaries} == {"Failed"}


def test_an_empty_store_is_an_empty_list(store):
    assert LocalPlatform(data_dir=store.data_dir).list() == []
    with pytest.raises(JobNotFoundError):
        store.find("job")
    assert not store.data_dir.exists()


class Interrupted(dict):
    """Content of a request at which Ctrl-C is pressed."""

    def items(self):
        raise KeyboardInterrupt


def test_the_limits_of_a_record_of_an_earlier_version_are_the_engines_settings(store):
    folder = made(store)
    content = json.loads((folder.path / "job.json").read_text())
    del content["engine"]
    (folder.path / "job.json").write_text(json.dumps({**content, "limits": {"memory": 5}}))
    assert folder.read_job().engine == {"memory": 5}


@pytest.mark.parametrize(("content", "raised"), [(Interrupted(x=1), KeyboardInterrupt), ({"x": object()}, TypeError)])
def test_a_creation_that_is_interrupted_leaves_no_draft(store, content, raised):
    job = replace(JOB, engine=content)
    with pytest.raises(raised), store.create(job, starting_state("job", "arn", 0.0)):
        pass
    assert list(store.jobs.iterdir()) == []


def test_a_draft_that_was_left_is_not_a_job(store):
    folder = made(store)
    folder.write_state(folder.read_state().with_status("Failed", 1.0))
    folder.path.rename(store.jobs / ".new-left")
    assert LocalPlatform(data_dir=store.data_dir).list() == []
    with pytest.raises(JobNotFoundError):
        store.find(".new-left")


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "a/b", ""], ids=["long", "NUL", "slash", "empty"])
def test_a_name_that_no_job_can_have_is_not_found(store, name):
    made(store)
    with pytest.raises(JobNotFoundError):
        store.find(name)


def test_a_data_directory_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="SCRIPTMODE_DATA_DIR"):
        made(JobStore(tmp_path / "file"))


def test_the_data_directory_follows_the_platforms_convention(monkeypatch, tmp_path):
    monkeypatch.delenv("SCRIPTMODE_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_data_dir() == tmp_path / "scriptmode"
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", "~/elsewhere")
    assert default_data_dir() == Path.home() / "elsewhere"


def test_the_end_of_a_log_is_read_without_the_rest(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"x\n" * 1_000_000 + b"one\n\xfftwo\n")
    assert last_lines(log, 2, 100) == "one\n\ufffdtwo"
    assert last_lines(log, 2, 3) == "two"
    assert last_lines(log, 2, 6) == "\ufffdtwo", "no line is cut"
    assert last_lines(tmp_path / "missing", 2, 5) == ""


def spec(**arguments):
    return TrainingJobSpec("job", Resources(1, "local_process"), script=Script("train.py"), **arguments)


def test_a_source_is_stored_once(tmp_path):
    platform = LocalPlatform(data_dir=tmp_path / "data dir")
    uri = f"{platform.complete(spec()).output.code_location}/abc/sourcedir.tar.gz"
    platform.put_source(b"archive", uri)
    path = tmp_path / "data dir/sources/abc/sourcedir.tar.gz"
    before = path.stat().st_mtime_ns
    platform.put_source(b"archive", uri)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (b"archive", before)


@pytest.mark.parametrize(
    ("role", "arn"),
    [
        (None, "arn:aws:iam::000000000000:role/scriptmode-local"),
        ("trainer", "arn:aws:iam::000000000000:role/trainer"),
        ("arn:aws:iam::123456789012:role/own", "arn:aws:iam::123456789012:role/own"),
    ],
)
def test_a_role_is_always_an_arn(tmp_path, role, arn):
    assert LocalPlatform(data_dir=tmp_path).complete(spec(role=role)).role == arn


def test_importing_the_platform_imports_no_client_of_aws():
    code = (
        "import sys, scriptmode.platforms.local, scriptmode.platforms.local.agent.job_agent, scriptmode.platforms.local.validation;"
        "print([name for name in ('boto3', 'botocore', 's3transfer', 'urllib3', 'tensorflow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_folder_that_is_not_a_job_is_ignored(store):
    made(store)
    (store.jobs / "model of another life").mkdir()
    (store.jobs / "file").write_text("")
    store.find("job").write_state(store.find("job").read_state().with_status("Failed", 1.0))
    assert [job["TrainingJobName"] for job in LocalPlatform(data_dir=store.data_dir).list()] == ["job"]
