"""A disk that gets full below a local job, at any moment: the reason is the disk or the script's own, and stays so."""

import itertools
import os
import signal
import time

import pytest
from fakes.local_jobs import LocalJobs
from fakes.processes import processes_naming, until
from faults.disks import fill, small_disk

from scriptmode import DataError
from scriptmode_runtime._processes import proc

pytestmark = [pytest.mark.root, pytest.mark.slow]
#: Takes the last byte of the disk of a folder.
FILL = """
    import os, pathlib, time
    print("up", flush=True)
    def fill(folder):
        for size in (1 << 20, 4096, 1):
            with open(os.path.join(folder, f"of {{size}}"), "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError as error:
                    print(error, flush=True)
    {then}
"""
WAITS = """
    import pathlib, os, time
    print("up", flush=True)
    go = pathlib.Path(os.environ["SM_MODEL_DIR"]).parent / "go"
    while not go.exists():
        time.sleep(0.01)
"""
MEBIBYTE = 1 << 20


@pytest.fixture(params=["tmpfs", "ext4"])
def file_system(request):
    return request.param


@pytest.fixture
def disk(file_system, tmp_path):
    with small_disk(tmp_path / "disk", file_system) as folder:
        yield folder


@pytest.fixture
def jobs(disk, closed_after):
    """Jobs whose data directory, and nothing else, is on the disk."""
    source = disk.with_name("sources")
    source.mkdir()
    local_jobs = closed_after(LocalJobs(disk))
    local_jobs.source = LocalJobs(source).source
    return local_jobs


def failed_for_the_disk(jobs, description, of=None):
    """Assert that a job failed because a disk was full, and that its folder says so too."""
    reason = description["FailureReason"]
    assert description["TrainingJobStatus"] == "Failed", reason
    if "has space for 0 bytes; free space there" in reason:
        # The launcher's own words, of the source archive that it unpacks.
        assert reason.endswith(", exit code: 1")
    else:
        assert reason.startswith("ClientError: "), reason
        assert f"the disk of '{of or jobs.data_dir}" in reason, reason
        assert "is full" in reason
    assert "InternalServerError" not in reason
    stays(jobs, description)
    return reason


def stays(jobs, description):
    """Assert that the state is recorded: it is the same for another process, once the agent is gone."""
    name = description["TrainingJobName"]
    until(lambda: not processes_naming(str(jobs.job_folder(name).path)))
    assert LocalJobs(jobs.folder).platform.describe(name).response == description
    assert jobs.job_folder(name).read_state().reason


def works_again(jobs):
    """Assert that a job completes on the disk, now that there is space."""
    assert jobs.run("print('fine')")["TrainingJobStatus"] == "Completed"


def test_a_disk_that_is_full_before_the_start_is_named_and_nothing_is_left(jobs):
    jobs.data_dir.mkdir()
    filler = fill(jobs.folder)
    with pytest.raises(DataError, match=r"the disk of '.*data dir' is full .*; delete some files, or set SCRIPTMODE_"):
        jobs.start("pass")
    assert jobs.platform.list() == []
    assert not list((jobs.data_dir / "jobs").glob("*"))
    filler.unlink()
    works_again(jobs)


#: In which the file systems take turns.
SIZES = (48, 72, 80, 88, 96, 112, 128, 160, 224)


@pytest.mark.parametrize(("kibibytes", "file_system"), [*zip(SIZES, itertools.cycle(("tmpfs", "ext4")))])
def test_a_disk_with_little_space_ends_a_job_with_the_true_reason_wherever_it_gets_full(jobs, kibibytes):
    jobs.data_dir.mkdir()
    filler = fill(jobs.folder, kibibytes * 1024)
    try:
        description = jobs.run("print('fine')")
    except DataError as error:
        assert "is full" in str(error)  # noqa: PT017 - or the job comes that far
        assert jobs.platform.list() == []
    else:
        if description["TrainingJobStatus"] == "Failed":
            failed_for_the_disk(jobs, description)
    filler.unlink()
    works_again(jobs)


def test_a_disk_that_gets_full_while_inputs_are_staged_is_named(jobs, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "large").write_bytes(bytes(20 * MEBIBYTE))
    request = jobs.request("pass")
    request["CheckpointConfig"] = {"S3Uri": f"file://{tmp_path}/kept"}
    jobs.platform.create(request)
    reason = failed_for_the_disk(jobs, jobs.wait("job-1"))
    assert "Data download failed" in reason
    # What was staged of it is not left, but in the host's folder, which is kept after a failure.
    (jobs.job_folder("job-1").host("algo-1") / "checkpoints" / "large").unlink()
    works_again(jobs)


@pytest.mark.parametrize("end", ["raise SystemExit(7)", "raise ValueError('my own words')"])
def test_a_script_that_fills_the_disk_keeps_its_own_cause_and_exit_code(jobs, end):
    description = jobs.run(FILL.format(then=f"fill(os.environ['SM_MODEL_DIR']); {end}"))
    reason = description["FailureReason"]
    assert reason.startswith("AlgorithmError: algo-1")
    assert reason.endswith(f", exit code: {7 if 'Exit' in end else 1}")
    if "words" in end:
        assert "ValueError: my own words" in reason
    stays(jobs, description)
    for file in (jobs.job_folder("job-1").host("algo-1") / "model").iterdir():
        file.unlink()
    works_again(jobs)


def test_a_script_that_fills_the_disk_and_completes_cannot_deliver(jobs):
    description = jobs.run(FILL.format(then="fill(os.environ['SM_MODEL_DIR'])"))
    reason = failed_for_the_disk(jobs, description)
    assert "Artifact upload failed" in reason
    assert not list(jobs.job_folder("job-1").output.glob(".*")), "half an archive is left"
    for file in (jobs.job_folder("job-1").host("algo-1") / "model").iterdir():
        file.unlink()
    works_again(jobs)


@pytest.mark.parametrize("stays_full", [False, True])
def test_a_job_goes_on_while_the_disk_is_full_and_counts_the_lines_that_its_logs_lost(jobs, stays_full):
    # Files are removed as signals: on a full disk none can be made.
    script = """
        import os, pathlib, time
        waits, writes, ends = (pathlib.Path(name) for name in ("waits", "writes", "ends"))
        for each in waits, writes, ends:
            each.touch()
        print("up", flush=True)
        while waits.exists():
            time.sleep(0.02)
        for number in range(20_000):
            print(f"line {number:06} of a long log", flush=number % 1000 == 0)
        writes.unlink()
        while ends.exists():
            time.sleep(0.02)
    """
    name = jobs.start(script, hosts=2)
    jobs.until_up(name)
    hosts = {host: jobs.job_folder(name).host(host) / "code" for host in ("algo-1", "algo-2")}
    filler = fill(jobs.folder)
    for code in hosts.values():
        (code / "waits").unlink()
        until(lambda: not (code / "writes").exists(), 60)  # noqa: B023 - it is called at once
    # For the last lines to reach the log, and the agent to record the state.
    time.sleep(1.0)
    assert jobs.platform.describe(name).response["TrainingJobStatus"] == "InProgress"
    if not stays_full:
        filler.unlink()
    for code in hosts.values():
        (code / "ends").unlink()
    assert jobs.wait(name)["TrainingJobStatus"] == "Completed"
    losses = {event.host: event.message for event in jobs.platform.events(name) if event.is_loss}
    assert losses.keys() == hosts.keys()
    for host, message in losses.items():
        kept = sum(line.startswith(f"{host}: ") for line in jobs.lines(name))
        # With "up", two lines of the launcher, and the notice.
        assert int(message.split()[0].replace(",", "")) == 20_004 - kept


def test_a_job_is_stopped_on_a_full_disk(jobs, tmp_path_factory):
    full = tmp_path_factory.mktemp("elsewhere") / "full"
    then = f"fill(os.environ['SM_OUTPUT_DATA_DIR']); pathlib.Path({str(full)!r}).touch(); time.sleep(600)"
    name = jobs.start(FILL.format(then=then))
    until(full.exists)
    jobs.platform.stop(name)
    # What was saved cannot be delivered: the reason says so.
    failed_for_the_disk(jobs, jobs.wait(name))


def test_an_agent_that_is_killed_on_a_full_disk_leaves_a_job_that_says_so(jobs):
    name = jobs.start("import time; print('up', flush=True); time.sleep(60)")
    jobs.until_line(name, "up")
    filler = fill(jobs.folder)
    os.kill(jobs.agent(name).pid, signal.SIGKILL)
    until(lambda: not proc.is_running(jobs.agent(name)))
    description = jobs.platform.describe(name).response
    assert "was killed or crashed in Training" in description["FailureReason"]
    stays(jobs, description)
    filler.unlink()
    works_again(jobs)


def test_the_disk_of_the_output_place_is_named_and_the_artifacts_are_kept(disk, tmp_path):
    jobs = LocalJobs(tmp_path / "jobs")
    jobs.folder.mkdir()
    script = """
        import os, pathlib
        pathlib.Path(os.environ["SM_MODEL_DIR"], "w").write_bytes(os.urandom(20 << 20))
    """
    description = jobs.run(script, output=f"file://{disk}/out")
    reason = failed_for_the_disk(jobs, description, of=disk / "out")
    assert "name another output_path" in reason
    assert (jobs.job_folder("job-1").output / "model.tar.gz").stat().st_size > 20 * MEBIBYTE
    assert os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize > 10 * MEBIBYTE, "a half file is left"
    jobs.close()


@pytest.fixture
def other_jobs(tmp_path, closed_after):
    """Jobs whose data directory is on no disk of its own."""
    return closed_after(LocalJobs(tmp_path))


def test_what_cannot_be_removed_is_a_warning_in_the_agents_log(other_jobs):
    jobs = other_jobs
    name = jobs.start(WAITS)
    jobs.until_line(name, "up")
    folder = jobs.job_folder(name)
    with small_disk(folder.host("algo-1") / "mounted", "tmpfs"):
        (folder.host("algo-1") / "go").touch()
        description = jobs.completed(name)
        until(lambda: not processes_naming(str(folder.path)))
        assert jobs.platform.describe(name).response == description
        assert "warning: " in (log := folder.agent_log.read_text())
        assert f"{folder.hosts} is not needed any more and cannot be removed: " in log
