"""FastFile channels and file systems, mounted for real jobs."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fakes import plain_user
from fakes.local_jobs import LocalJobs, channel
from fakes.processes import until

from scriptmode.data import mounts
from scriptmode.errors import DataError
from scriptmode_runtime.processes import process_tree

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a folder")
SYSTEM = "fs-0123456789abcdef0"
TOUCH = """
    import os
    root = os.environ["SM_CHANNEL_TRAIN"]
    print("found", sorted(os.listdir(root)), open(os.path.join(root, "a")).read())
    try:
        open(os.path.join(root, "new"), "w").write("mine")
    except OSError as error:
        print("refused", error.strerror)
"""


@pytest.fixture
def data(tmp_path):
    (tmp_path / "disk" / "data").mkdir(parents=True)
    (tmp_path / "disk" / "data" / "a").write_text("A")
    return tmp_path / "disk" / "data"


def fast(data):
    return [channel("train", f"file://{data}", InputMode="FastFile")]


def file_system(access, directory="/data"):
    source = {
        "FileSystemId": SYSTEM,
        "FileSystemAccessMode": access,
        "FileSystemType": "EFS",
        "DirectoryPath": directory,
    }
    return [{"ChannelName": "train", "DataSource": {"FileSystemDataSource": source}}]


@pytest.fixture
def on_disk(tmp_path, data):
    """Jobs for which the file system is a folder."""
    jobs = LocalJobs(tmp_path, file_systems={SYSTEM: data.parent})
    yield jobs
    jobs.close()


def said(jobs, description):
    assert description["TrainingJobStatus"] == "Completed", description
    return [line.partition(": ")[2] for line in jobs.lines(description["TrainingJobName"])]


def serves_mount(pid):
    opened = {str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()}
    return mounts.DEVICE in opened


def mounted(jobs):
    return mounts.mounted_below(jobs.data_dir)


def test_fast_files_are_read_and_never_written_and_no_mount_is_left(jobs, data):
    lines = said(jobs, jobs.run(TOUCH, hosts=2, channels=fast(data)))
    assert lines.count("found ['a'] A") == lines.count("refused Read-only file system") == 2
    assert mounted(jobs) == []
    assert [path.name for path in data.iterdir()] == ["a"]


def test_a_file_system_that_may_be_written_is_the_folder_itself(on_disk, data):
    lines = said(on_disk, on_disk.run(TOUCH, channels=file_system("rw")))
    assert "found ['a'] A" in lines
    assert (data / "new").read_text() == "mine"


@needs_root
def test_a_file_system_that_may_only_be_read_is_mounted_so(on_disk, data):
    lines = said(on_disk, on_disk.run(TOUCH, hosts=2, channels=file_system("ro")))
    assert lines.count("found ['a'] A") == lines.count("refused Read-only file system") == 2
    assert mounted(on_disk) == []
    assert [path.name for path in data.iterdir()] == ["a"]


@needs_root
@pytest.mark.parametrize("end", ["killed agent", "deleted job", "removed folder"])
def test_no_read_only_file_system_outlives_its_job_and_its_data_stays(on_disk, data, end):
    script = "import time; print('up', flush=True); time.sleep(60)"
    name = on_disk.start(script, channels=file_system("ro"))
    on_disk.until_line(name, "up")
    assert len(mounted(on_disk)) == 1
    if end == "killed agent":
        os.kill(on_disk.agent(name).pid, signal.SIGKILL)
        until(lambda: not process_tree.is_running(on_disk.agent(name)))
        assert on_disk.platform.describe(name)["TrainingJobStatus"] == "Failed"
    elif end == "deleted job":
        on_disk.platform.delete(name)
    else:
        shutil.rmtree(on_disk.job_folder(name).path, ignore_errors=True)
        until(lambda: not on_disk.job_folder(name).path.exists())
    assert mounted(on_disk) == []
    assert (data / "a").read_text() == "A"


def test_a_file_system_that_cannot_be_mounted_is_a_link_and_the_log_says_so():
    program = """
        import sys
        from pathlib import Path
        from fakes.local_jobs import LocalJobs
        from processes.test_mounted_channels import SYSTEM, TOUCH, file_system, said
        home = Path(sys.argv[1])
        jobs = LocalJobs(home, file_systems={SYSTEM: home / "disk"})
        print(*said(jobs, jobs.run(TOUCH, channels=file_system("ro"))), sep=chr(10))
        jobs.close()
    """
    with plain_user.folder_of_the_user() as home:
        (home / "disk" / "data").mkdir(parents=True)
        (home / "disk" / "data" / "a").write_text("A")
        os.chown(home / "disk" / "data", plain_user.UID, -1)
        printed = plain_user.run(textwrap.dedent(program), str(home), home=home)
        assert (home / "disk" / "data" / "new").read_text() == "mine"
    assert "found ['a'] A" in printed
    assert "warning: channel 'train' is file system" in printed
    assert "read-only was refused: Operation not permitted; run the job as root" in printed


@pytest.mark.parametrize(
    ("directory", "told"),
    [("/data/nowhere", "DirectoryPath '/data/nowhere'"), ("/../data", "contains '..'; leave it out")],
)
def test_a_folder_that_is_not_there_is_told_before_anything_is_done(on_disk, directory, told):
    with pytest.raises(DataError, match=f"channel 'train': file system '{SYSTEM}': .*{told}"):
        on_disk.start(TOUCH, channels=file_system("ro", directory))
    assert not (on_disk.data_dir / "jobs").exists()


def test_a_file_system_without_a_folder_says_how_to_name_one(jobs):
    with pytest.raises(
        DataError, match=r"LocalPlatform\(file_systems=.*SCRIPTMODE_FILE_SYSTEMS=fs-0123456789abcdef0=/folder"
    ):
        jobs.start(TOUCH, channels=file_system("ro"))


def test_an_object_that_is_gone_when_it_is_read_fails_the_job(jobs, data):
    script = f"""
    import os, time
    os.unlink({str(data / "a")!r})
    try:
        open(os.path.join(os.environ["SM_CHANNEL_TRAIN"], "a")).read()
    except OSError:
        pass
    time.sleep(60)
    """
    description = jobs.run(script, channels=fast(data))
    assert description["TrainingJobStatus"] == "Failed"
    assert description["FailureReason"].startswith("ClientError: Data download failed: algo-1: ")
    assert f"file://{data}/a" in description["FailureReason"]


def test_a_mount_whose_server_died_fails_the_job(jobs, data):
    name = jobs.start("import time; print('up', flush=True); time.sleep(60)", channels=fast(data))
    jobs.until_line(name, "up")
    (server,) = filter(serves_mount, process_tree.descendants(jobs.agent(name).pid))
    os.kill(server, signal.SIGKILL)
    description = jobs.wait(name)
    assert "the mount at" in description["FailureReason"]
    assert mounted(jobs) == []


def test_no_mount_outlives_a_killed_agent(jobs, data):
    name = jobs.start("import time; print('up', flush=True); time.sleep(60)", channels=fast(data))
    jobs.until_line(name, "up")
    assert len(mounted(jobs)) == 1
    os.kill(jobs.agent(name).pid, signal.SIGKILL)
    until(lambda: not process_tree.is_running(jobs.agent(name)))
    assert jobs.platform.describe(name)["TrainingJobStatus"] == "Failed"
    assert mounted(jobs) == []


def test_a_job_whose_folder_is_removed_takes_its_mounts_with_it(jobs, data):
    name = jobs.start("import time; print('up', flush=True); time.sleep(60)", channels=fast(data))
    jobs.until_line(name, "up")
    shutil.rmtree(jobs.job_folder(name).path, ignore_errors=True)
    until(lambda: not jobs.job_folder(name).path.exists())
    assert mounted(jobs) == []
    assert (data / "a").read_text() == "A"


def test_where_nothing_can_be_mounted_the_objects_are_copied_and_the_log_says_why(tmp_path, data):
    # A mount name space in which the device is another one, as in a container that was given none.
    jobs = f"""
    from fakes.local_jobs import LocalJobs
    from processes.test_mounted_channels import TOUCH, fast, said
    jobs = LocalJobs({str(tmp_path)!r})
    print(*said(jobs, jobs.run(TOUCH, channels=fast({str(data)!r}))), sep=chr(10))
    """
    command = 'mount --bind /dev/null /dev/fuse && exec "$@"'
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    within = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", command, "sh"]
    argv = [*within, sys.executable, "-c", textwrap.dedent(jobs)]
    printed = subprocess.run(argv, env=environment, check=True, timeout=60, stdout=subprocess.PIPE, text=True).stdout
    assert "found ['a'] A" in printed
    assert "was copied as in File mode: mounting a FUSE file system was refused: Invalid argument" in printed
    assert (data / "a").read_text() == "A"
