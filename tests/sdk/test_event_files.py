"""Which event files of a job are gathered, and from where; without TensorBoard."""

import io
import tarfile

import pytest
from fakes.host_folders import write_files
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


@pytest.mark.parametrize("is_in_output", [True, False])
def test_the_model_is_fetched_from_amazon_sagemaker_if_the_output_has_no_event_files(gathered, is_in_output):
    fake, job = started(Life.completed(model={f"eval/{EVENTS}": b"1"}))
    if is_in_output:
        packed_output = packed({f"logs/{EVENTS}": b"1", "logs/else.txt": b""})
        fake.objects["s3://out/jobs/job-1/output/output.tar.gz"] = packed_output
    job.wait()
    assert EventFiles(job.platform, job.name, gathered).gather()
    assert names(gathered) == [f"data/logs/{EVENTS}" if is_in_output else f"model/eval/{EVENTS}"]


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
    name = jobs.start(f"import os; open(os.environ['SM_MODEL_DIR'] + '/{EVENTS}', 'w'); raise SystemExit(1)")
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


def test_the_target_of_a_containers_link_is_not_an_event_file_of_its(tmp_path):
    host = tmp_path / "algo-1"
    outside = tmp_path / "elsewhere" / "data" / "events.out.tfevents.1"
    write_files(tmp_path, {outside: "of this machine", host / "model" / "events.out.tfevents.2": "own"})
    (host / "output").symlink_to(tmp_path / "elsewhere")
    (host / "model" / "events.out.tfevents.1").symlink_to(outside)
    assert list(event_files._event_files(host, "output/data")) == []
    found = [(name, file.read()) for name, file in event_files._event_files(host, "model")]
    assert found == [("events.out.tfevents.2", b"own")]
