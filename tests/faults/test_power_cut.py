"""Power cuts at any moment of a local job: what the store says afterwards is on the disk, whole."""

import random
import time

import pytest
from fakes.local_jobs import ENDED, LocalJobs, unpacked
from fakes.processes import processes_naming, until
from faults.disks import JOURNAL_LOST, JOURNAL_WRITTEN, power_cut

from scriptmode.errors import FAILED_DISK, DataError

pytestmark = [pytest.mark.root, pytest.mark.slow]
JOURNALS = pytest.mark.parametrize(
    "journal", [pytest.param(JOURNAL_LOST, id="journal lost"), pytest.param(JOURNAL_WRITTEN, id="journal written")]
)
#: Larger than what ext4 keeps beside an inode, and as large as several pages.
SIZE = 200_000
PROGRAM = f"""
    import os, pathlib, sys, time
    def save(folder, name):
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() * {SIZE})
    print("up", flush=True)
    save(os.environ["SM_MODEL_DIR"], "deep/w")
    save(os.environ["SM_OUTPUT_DATA_DIR"], "d")
    for step in range(3):
        save("/opt/ml/checkpoints", f"step-{{{{step}}}}/c")
        save("/opt/ml/checkpoints", f"i-{{{{step}}}}")
    {{then}}
    print("trained", flush=True)
"""


@pytest.fixture
def disk(tmp_path):
    with power_cut(tmp_path) as made:
        yield made


@pytest.fixture
def jobs(disk):
    return LocalJobs(disk.folder)


def start(jobs, then="pass", compression="GZIP", output="jobs"):
    """Start a job that leaves a model, output and checkpoints; give its name."""
    where = f"{jobs.data_dir}/jobs" if output == "jobs" else f"{jobs.folder}/{output}"
    more = {
        "OutputDataConfig": {"S3OutputPath": f"file://{where}", "CompressionType": compression},
        "CheckpointConfig": {"S3Uri": f"file://{jobs.folder}/kept/below"},
    }
    return jobs.start(PROGRAM.format(then=then), more=more)


def whole(path):
    """The files below a folder that are under their own names; each must be whole."""
    names = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file() and file.name[0] != "."}
    for name in names:
        assert (path / name).read_bytes() == name.encode() * SIZE, f"{name} is not whole"
    return names


def check(jobs, name):
    """Assert that everything the store says after a cut is true; give the description."""
    fresh = LocalJobs(jobs.folder)
    assert [job["TrainingJobName"] for job in fresh.platform.list()] == [name]
    description = fresh.platform.describe(name).response
    assert description["TrainingJobStatus"] in ENDED
    kept = whole(jobs.folder / "kept" / "below")
    if description["TrainingJobStatus"] == "Completed":
        uri = description["ModelArtifacts"]["S3ModelArtifacts"]
        place = type(jobs.folder)(uri[len("file://") :])
        if uri.endswith("/"):
            assert whole(place) == {"deep/w"}
            assert whole(place.parent / "data") == {"d"}
        else:
            assert unpacked(place) == {"deep": None, "deep/w": b"deep/w" * SIZE}
            assert unpacked(place.with_name("output.tar.gz")) == {"d": b"d" * SIZE}
        assert kept == {f"step-{step}/c" for step in range(3)} | {f"i-{step}" for step in range(3)}
        assert "algo-1: trained" in fresh.lines(name)
    return description


@JOURNALS
@pytest.mark.parametrize("line", ["", "up"], ids=["when it was created", "in its first seconds"])
def test_a_job_that_is_cut_off_is_there_and_failed(disk, jobs, journal, line):
    name = start(jobs, then="time.sleep(60)")
    assert not line or jobs.until_line(name, line)
    disk.cut(journal)
    description = check(jobs, name)
    assert description["TrainingJobStatus"] == "Failed"
    assert not line or "agent" in description["FailureReason"]


@JOURNALS
@pytest.mark.parametrize(
    ("compression", "output"),
    [
        pytest.param("GZIP", "jobs", id="archives in the job's folder"),
        pytest.param("GZIP", "new/folders/out", id="archives elsewhere"),
        pytest.param("NONE", "new/folders/out", id="files elsewhere"),
    ],
)
def test_what_a_completed_job_left_is_there(disk, jobs, journal, compression, output):
    name = start(jobs, compression=compression, output=output)
    until(lambda: jobs.job_folder(name).read_state().ended)
    disk.cut(journal)
    # The state is to be seen a moment before it is durable; as long as it may be lost the hosts' folders are there.
    if check(jobs, name)["TrainingJobStatus"] != "Completed":
        assert jobs.job_folder(name).host("algo-1").joinpath("model").exists()


@JOURNALS
def test_checkpoints_that_were_delivered_are_there(disk, jobs, journal):
    name = start(jobs, then="time.sleep(60)")
    record = jobs.job_folder(name).channels / "checkpoints.json"
    until(lambda: "i-2" in record.read_text() if record.exists() else False)
    disk.cut(journal)
    assert check(jobs, name)["TrainingJobStatus"] == "Failed"
    assert len(whole(jobs.folder / "kept" / "below")) == 6


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(4, 8))])
def test_a_cut_at_any_moment_leaves_nothing_untrue(disk, jobs, seed):
    chance = random.Random(seed)
    name = start(jobs)
    time.sleep(chance.uniform(0.0, 2.5))
    disk.cut(chance.choice((JOURNAL_LOST, JOURNAL_WRITTEN)))
    check(jobs, name)


def test_a_disk_that_fails_ends_the_hosts_and_each_verb_names_it(disk, jobs):
    name = start(jobs, then="time.sleep(600)")
    jobs.until_line(name, "up")
    until((jobs.folder / "kept" / "below" / "i-2").exists)
    disk.fail()
    fresh = LocalJobs(jobs.folder).platform
    for verb in (fresh.describe, fresh.stop, fresh.delete):
        with pytest.raises(DataError, match="Input/output error") as raised:
            verb(name)
        assert raised.value.advice == FAILED_DISK
    (summary,) = fresh.list()
    assert summary["TrainingJobStatus"] == "Unreadable"
    assert FAILED_DISK in summary["StatusMessage"]
    # The job's agent alone is left, which tries to record the end.
    until(lambda: len(processes_naming(f"{disk.folder}/")) <= 1)
    disk.cut(JOURNAL_WRITTEN)
    assert check(jobs, name)["TrainingJobStatus"] == "Failed"
