"""Channels that are piped or mounted, whose sources, servers and readers do what they should not, in real jobs."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fakes.installed import require_mounts
from fakes.local_jobs import SLEEPS, LocalJobs, channel
from fakes.processes import open_files, recorded, until

from scriptmode_local._data import mounts
from scriptmode_runtime._processes import proc, process_tree

SYSTEM = "fs-0123456789abcdef0"
PLACE = """
    import os, sys, time
    place = os.path.join(os.environ["SM_INPUT_DIR"], "data", "train")
"""
TOUCH = """
    import os
    root = os.environ["SM_CHANNEL_TRAIN"]
    print("found", sorted(os.listdir(root)), open(os.path.join(root, "a")).read())
    open(os.path.join(root, "new"), "w").write("mine")
"""


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "disk" / "data"
    folder.mkdir(parents=True)
    (folder / "a").write_text("A")
    return folder


def channels(data, mode):
    return [channel("train", f"file://{data}", InputMode=mode)]


def reason(description):
    assert description["TrainingJobStatus"] == "Failed", description
    return description["FailureReason"]


def test_an_object_that_is_another_in_the_middle_of_an_epoch_fails_the_job(jobs, data):
    # More than is read ahead, so that its end is still to be read.
    with (data / "big").open("wb") as file:
        file.truncate(400_000_000)
    script = f"""{PLACE}
    path = {str(data / "big")!r}
    with open(place + "_0", "rb") as fifo:
        fifo.read(1000)
        open(path, "a").write("more")
        while fifo.read(1000000):
            pass
    print("took the break for the end")
    """
    description = jobs.run(script, channels=channels(data, "Pipe"))
    for said in (reason(description), "".join(jobs.lines(description["TrainingJobName"]))):
        assert f"file://{data}/big: the file was changed while the job read it" in said
        assert "took the break" not in said


def producers(jobs, name):
    """The forked children of a host's agent, without the hosts' launchers and the youngest: it samples the hosts."""
    processes = recorded(jobs.job_folder(name))
    hosts = [identity.pid for name, identity in processes.items() if name.startswith("algo-")]
    launched = {below for host in hosts for below in [host, *process_tree.descendants(host)]}
    agent = processes["agent of algo-1"].pid
    forked = [proc.identify(pid) for pid in process_tree.descendants(agent) if pid not in launched]
    return [each.pid for each in sorted(filter(None, forked), key=lambda each: (each.started, each.pid))[:-1]]


def test_a_killed_producer_fails_the_job_however_well_the_script_ends(jobs, data):
    (data / "d").write_bytes(bytes(50_000_000))
    script = f"""{PLACE}
    with open(place + "_0", "rb") as fifo:
        fifo.read(1000)
        print("reading", flush=True)
        while not os.path.exists({str(data / "go")!r}):
            time.sleep(0.01)
        while fifo.read(1000000):
            pass
    """
    name = jobs.start(script, channels=channels(data, "Pipe"))
    jobs.until_line(name, "reading")
    (producer,) = producers(jobs, name)
    os.kill(producer, signal.SIGKILL)
    (data / "go").touch()
    said = reason(jobs.wait(name))
    assert said.startswith("ClientError: Data download failed: algo-1: ")
    assert "SIGKILL" in said


def test_a_channel_that_no_host_opens_is_reported_when_the_job_ends(jobs, data):
    of_one = f"{PLACE}\n    if os.environ['SM_CURRENT_HOST'] == 'algo-1': open(place + '_0').read()"
    names = [jobs.start(script, hosts=2, channels=channels(data, "Pipe")) for script in ("print('done')", of_one)]
    warnings, silent = (
        [line for line in jobs.lines(name) if "in Pipe mode" in line] for name in names if jobs.completed(name)
    )
    assert silent == []
    assert [line.split(":")[0] for line in warnings] == ["algo-1", "algo-2"]
    assert "nothing on algo-1 opened" in warnings[0]
    assert "train_0; read it, give it input_mode='File' for a directory of files, or leave it out" in warnings[0]


def test_a_channel_that_is_read_as_a_folder_fails_with_what_helps(jobs, data):
    description = jobs.run("import os; os.listdir(os.environ['SM_CHANNEL_TRAIN'])", channels=channels(data, "Pipe"))
    assert "or has it in Pipe mode, as FIFOs" in reason(description)
    assert not [line for line in jobs.lines(description["TrainingJobName"]) if "leave it out" in line]


def test_an_object_that_is_gone_when_it_is_read_fails_the_job(jobs, data):
    require_mounts()
    script = f"""
    import os, time
    os.unlink({str(data / "a")!r})
    try:
        open(os.path.join(os.environ["SM_CHANNEL_TRAIN"], "a")).read()
    except OSError:
        pass
    time.sleep(60)
    """
    said = reason(jobs.run(script, channels=channels(data, "FastFile")))
    assert said.startswith("ClientError: Data download failed: algo-1: ")
    assert f"file://{data}/a" in said


def test_a_mount_whose_server_died_fails_the_job(jobs, data):
    require_mounts()
    name = jobs.start(SLEEPS, channels=channels(data, "FastFile"))
    jobs.until_line(name, "up")
    (server,) = (pid for pid in process_tree.descendants(jobs.agent(name).pid) if mounts.DEVICE in open_files(pid))
    os.kill(server, signal.SIGKILL)
    assert "the mount at" in reason(jobs.wait(name))
    assert mounts.mounted_below(jobs.data_dir) == []


@pytest.mark.root
@pytest.mark.parametrize("end", ["killed agent", "deleted job", "removed folder"])
def test_no_read_only_file_system_outlives_its_job_and_its_data_stays(tmp_path, data, end):
    jobs = LocalJobs(tmp_path, file_systems={SYSTEM: data.parent})
    fields = {"FileSystemId": SYSTEM, "FileSystemType": "EFS", "DirectoryPath": "/data", "FileSystemAccessMode": "ro"}
    name = jobs.start(SLEEPS, channels=[{"ChannelName": "train", "DataSource": {"FileSystemDataSource": fields}}])
    jobs.until_line(name, "up")
    assert len(mounts.mounted_below(jobs.data_dir)) == 1
    if end == "killed agent":
        jobs.kill(name)
        until(lambda: not proc.is_running(jobs.agent(name)))
        assert jobs.platform.describe(name).response["TrainingJobStatus"] == "Failed"
    elif end == "deleted job":
        jobs.platform.delete(name)
    else:
        shutil.rmtree(jobs.job_folder(name).path, ignore_errors=True)
        until(lambda: not jobs.exists(name))
    assert mounts.mounted_below(jobs.data_dir) == []
    assert (data / "a").read_text() == "A"
    jobs.close()


def test_where_nothing_can_be_mounted_the_objects_are_copied_and_the_log_says_why(tmp_path, data):
    # A mount name space in which the device is another one, as in a container that was given none.
    program = f"""
    from fakes.local_jobs import LocalJobs
    from processes.test_channel_failures import TOUCH, channels
    jobs = LocalJobs({str(tmp_path)!r})
    name = jobs.start(TOUCH, channels=channels({str(data)!r}, "FastFile"))
    jobs.completed(name)
    print(*jobs.lines(name), sep=chr(10))
    """
    command = 'mount --bind /dev/null /dev/fuse && exec "$@"'
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    within = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", command, "sh"]
    argv = [*within, sys.executable, "-c", textwrap.dedent(program)]
    printed = subprocess.run(argv, env=environment, check=True, timeout=600, stdout=subprocess.PIPE, text=True).stdout
    assert "found ['a'] A" in printed
    assert "was copied as in File mode: mounting a FUSE file system was refused: Invalid argument" in printed
    assert (data / "a").read_text() == "A"
