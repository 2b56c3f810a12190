"""Which event files of a job are gathered, and from where; without TensorBoard."""

import io
import tarfile
from pathlib import Path

import pytest
from fakes.sagemaker_jobs import started

from scriptmode import DataAccessError
from scriptmode.results import event_files
from scriptmode.results.event_files import EventFiles
from scriptmode.testing import Life, ServiceError

EVENTS = "events.out.tfevents.1.host"


@pytest.fixture
def gathered(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    folder = tmp_path / "gathered"
    folder.mkdir()
    return folder


def names(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*tfevents*"))


def packed(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def put(fake, key, body):
    fake.client("s3").put_object(Bucket="out", Key=key, Body=body)


def test_a_job_of_amazon_sagemaker_is_fetched_its_output_and_no_more(gathered):
    fake, job = started(Life.completed(model={EVENTS: b"of the model"}))
    put(fake, "jobs/job-1/output/output.tar.gz", packed({f"logs/{EVENTS}": b"1", "logs/else.txt": b""}))
    job.wait()
    assert EventFiles(job.platform, job.name, gathered).gather()
    assert names(gathered) == [f"data/logs/{EVENTS}"]


def test_a_job_without_event_files_in_its_output_is_searched_further(gathered):
    _, job = started(Life.completed(model={f"eval/{EVENTS}": b"1"}))
    job.wait()
    EventFiles(job.platform, job.name, gathered).gather()
    assert names(gathered) == [f"model/eval/{EVENTS}"]


def test_what_may_not_be_read_is_not_taken_for_a_missing_file(gathered):
    fake, job = started(Life.completed())
    job.wait()
    fake.fault("head_object", ServiceError("403", "Forbidden", 403), times=9)
    fake.fault("list_objects_v2", ServiceError("AccessDenied", "Access Denied", 403), times=9)
    with pytest.raises(DataAccessError):
        EventFiles(job.platform, job.name, gathered).gather()


def test_of_hosts_with_the_same_path_each_is_shown_and_the_artifact_completes_the_first(jobs, tmp_path, gathered):
    go_on = tmp_path / "go on"
    name = jobs.start(
        f"""
        import os, pathlib, time
        folder = pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"])
        file = folder / {EVENTS!r}
        file.write_text(os.environ["SM_CURRENT_HOST"])
        print("wrote", flush=True)
        while not pathlib.Path({str(go_on)!r}).exists():
            time.sleep(0.02)
        with file.open("a") as more:
            more.write(" to the end")
        """,
        hosts=2,
    )
    jobs.until_line(name, "algo-1: wrote")
    jobs.until_line(name, "algo-2: wrote")
    files = EventFiles(jobs.platform, name, gathered)
    assert not files.gather()
    assert names(gathered) == [f"algo-1/data/{EVENTS}", f"algo-2/data/{EVENTS}"]
    go_on.touch()
    jobs.wait(name)
    assert files.gather()
    assert names(gathered) == [f"algo-1/data/{EVENTS}", f"algo-2/data/{EVENTS}"]
    assert (gathered / "algo-1" / "data" / EVENTS).read_text() == "algo-1 to the end"


def test_a_failed_jobs_hosts_are_read_where_they_are_kept(jobs, gathered):
    script = f"""
    import os, pathlib
    pathlib.Path(os.environ["SM_MODEL_DIR"], {EVENTS!r}).write_text("1")
    raise SystemExit(1)
    """
    name = jobs.start(script)
    jobs.wait(name)
    EventFiles(jobs.platform, name, gathered).gather()
    assert names(gathered) == [f"algo-1/model/{EVENTS}"]


def test_a_folder_that_a_hyperparameter_names_is_linked_and_one_for_data_is_not(jobs, tmp_path, gathered):
    for folder in ("logs", "images"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / EVENTS).touch()
    (tmp_path / "logs" / "self").symlink_to(tmp_path / "logs")
    given = {"log-dir": str(tmp_path / "logs"), "data_dir": str(tmp_path / "images"), "model_dir": "/opt/ml/model"}
    name = jobs.start("pass", hyperparameters=given)
    jobs.wait(name)
    files = EventFiles(jobs.platform, name, gathered)
    files.gather()
    files.check_found()
    assert [path.name for path in gathered.iterdir()] == ["log-dir"]
    assert (gathered / "log-dir" / EVENTS).exists()


def test_only_jobs_of_this_machine_have_folders_here(jobs, tmp_path):
    _, elsewhere = started(Life.completed())
    assert elsewhere.platform.host_folders(elsewhere.name) == {}
    name = jobs.start("import time; print('up', flush=True); time.sleep(600)", hosts=2)
    jobs.until_line(name, "algo-2: up")
    assert list(jobs.platform.host_folders(name)) == ["algo-1", "algo-2"]
    assert jobs.platform.host_folders(name) == {
        host: Path(jobs.job_folder(name).host(host)) for host in ("algo-1", "algo-2")
    }


def test_the_target_of_a_containers_link_is_not_an_event_file_of_its(tmp_path):
    (tmp_path / "elsewhere" / "data").mkdir(parents=True)
    (tmp_path / "elsewhere" / "data" / "events.out.tfevents.1").write_bytes(b"of this machine")
    host = tmp_path / "algo-1"
    (host / "model").mkdir(parents=True)
    (host / "output").symlink_to(tmp_path / "elsewhere")
    (host / "model" / "events.out.tfevents.1").symlink_to(tmp_path / "elsewhere" / "data" / "events.out.tfevents.1")
    (host / "model" / "events.out.tfevents.2").write_bytes(b"own")
    assert list(event_files._event_files(host, "output/data")) == []
    found = [(name, file.read()) for name, file in event_files._event_files(host, "model")]
    assert found == [("events.out.tfevents.2", b"own")]
