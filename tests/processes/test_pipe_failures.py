"""Channels in Pipe mode whose sources, producers and readers do what they should not, in real jobs."""

import os
import signal

import pytest
from fakes.local_jobs import channel
from fakes.processes import recorded, until

from scriptmode.errors import DataNotFoundError
from scriptmode_runtime.processes import process_tree

PLACE = """
    import os, sys, time
    place = os.path.join(os.environ["SM_INPUT_DIR"], "data", "train")
"""


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for name in "abc":
        (folder / name).write_text(name * 100)
    return folder


def piped(data, **fields):
    return [channel("train", f"file://{data}", InputMode="Pipe", **fields)]


def reason(description):
    assert description["TrainingJobStatus"] == "Failed", description
    return description["FailureReason"]


def producers(jobs, name):
    """The forked children of a host's agent, without the hosts' launchers and the youngest: it samples the hosts."""
    processes = recorded(jobs.job_folder(name))
    hosts = [identity.pid for name, identity in processes.items() if name.startswith("algo-")]
    launched = {below for host in hosts for below in [host, *process_tree.descendants(host)]}
    agent = processes["agent of algo-1"].pid
    forked = [process_tree.identify(pid) for pid in process_tree.descendants(agent) if pid not in launched]
    return [each.pid for each in sorted(filter(None, forked), key=lambda each: (each.started, each.pid))[:-1]]


def test_an_empty_source_is_refused_before_the_job(jobs, data):
    for path in data.iterdir():
        path.unlink()
    with pytest.raises(DataNotFoundError, match=f"channel 'train': file://{data}: there is nothing in it"):
        jobs.start("pass", channels=piped(data))
    assert not (jobs.data_dir / "jobs").exists()


def test_a_file_that_is_changed_before_the_stream_comes_to_it_fails_the_job(jobs, data):
    for number in range(4):
        (data / f"big-{number}").write_bytes(bytes(60_000_000))
    script = f"""{PLACE}
    with open(place + "_0", "rb") as fifo:
        fifo.read(1000)
        open({str(data / "big-3")!r}, "wb").write(b"short")
        while fifo.read(1000000):
            pass
    """
    assert f"file://{data}/big-3: the file was changed while the job read it" in reason(
        jobs.run(script, channels=piped(data))
    )


@pytest.mark.parametrize("what", ["changed", "deleted"])
def test_an_object_that_is_another_in_the_middle_of_an_epoch_fails_the_job(jobs, data, what):
    # More than is read ahead, so that its end is still to be read.
    with (data / "big").open("wb") as file:
        file.truncate(400_000_000)
    action = "os.unlink(path)" if what == "deleted" else "open(path, 'a').write('more')"
    script = f"""{PLACE}
    path = {str(data / "big")!r}
    with open(place + "_0", "rb") as fifo:
        fifo.read(1000)
        {action}
        while fifo.read(1000000):
            pass
    print("took the break for the end")
    """
    description = jobs.run(script, channels=piped(data))
    assert "Data download failed: algo-1: channel 'train'" in reason(description)
    assert f"file://{data}/big" in reason(description)
    if what == "changed":
        assert "the file was changed while the job read it" in reason(description)
    assert "took the break" not in "".join(jobs.lines(description["TrainingJobName"]))


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
    name = jobs.start(script, channels=piped(data))
    jobs.until_line(name, "reading")
    (producer,) = producers(jobs, name)
    os.kill(producer, signal.SIGKILL)
    (data / "go").touch()
    said = reason(jobs.wait(name))
    assert said.startswith("ClientError: Data download failed: algo-1: ")
    assert "SIGKILL" in said


def test_a_channel_that_is_never_opened_is_told_when_the_job_ends(jobs, data):
    description = jobs.run("print('done')", hosts=2, channels=piped(data))
    assert description["TrainingJobStatus"] == "Completed"
    told = [line for line in jobs.lines(description["TrainingJobName"]) if "in Pipe mode" in line]
    assert [line.split(":")[0] for line in told] == ["algo-1", "algo-2"]
    assert "nothing on algo-1 opened" in told[0]
    assert "train_0; read it, give it input_mode='File' for a directory of files, or leave it out" in told[0]


def test_nothing_is_said_of_a_channel_that_one_host_reads_for_all(jobs, data):
    script = f"{PLACE}\n    if os.environ['SM_CURRENT_HOST'] == 'algo-1': open(place + '_0').read()"
    description = jobs.run(script, hosts=2, channels=piped(data))
    assert description["TrainingJobStatus"] == "Completed"
    assert not [line for line in jobs.lines(description["TrainingJobName"]) if "in Pipe mode" in line]


def test_a_channel_that_is_read_as_a_folder_fails_with_what_helps(jobs, data):
    description = jobs.run("import os; os.listdir(os.environ['SM_CHANNEL_TRAIN'])", channels=piped(data))
    assert "or has it in Pipe mode, as FIFOs" in reason(description)
    assert not [line for line in jobs.lines(description["TrainingJobName"]) if "leave it out" in line]


def test_a_reader_that_stops_early_goes_on_with_the_next_epoch(jobs, data):
    (data / "d").write_bytes(bytes(20_000_000))
    script = f"""{PLACE}
    for epoch in range(5):
        with open(f"{{place}}_{{epoch}}", "rb") as fifo:
            assert fifo.read(101) == b"a" * 100 + b"b"
    """
    assert jobs.run(script, channels=piped(data))["TrainingJobStatus"] == "Completed"


def test_a_job_that_streams_can_be_stopped_and_leaves_no_process(jobs, data):
    script = f"""{PLACE}
    with open(place + "_0", "rb") as fifo:
        print("reading", flush=True)
        time.sleep(60)
    """
    (data / "d").write_bytes(bytes(20_000_000))
    name = jobs.start(script, hosts=2, channels=piped(data))
    jobs.until_line(name, "algo-1: reading")
    jobs.until_line(name, "algo-2: reading")
    feeding = producers(jobs, name)
    assert len(feeding) == 2
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"
    until(lambda: not any(process_tree.identify(pid) for pid in feeding))


def test_producers_end_with_a_killed_agent(jobs, data):
    name = jobs.start("import time; print('up', flush=True); time.sleep(600)", channels=piped(data))
    jobs.until_line(name, "up")
    (producer,) = producers(jobs, name)
    os.kill(jobs.agent(name).pid, signal.SIGKILL)
    until(lambda: process_tree.identify(producer) is None)
    assert "agent" in reason(jobs.platform.describe(name))


def test_a_manifest_that_names_missing_objects_says_so(jobs, data, tmp_path):
    manifest = tmp_path / "manifest"
    manifest.write_text(f'[{{"prefix": "file://{data}/"}}, "nowhere"]')
    wanted = channel("train", f"file://{manifest}", InputMode="Pipe")
    wanted["DataSource"]["S3DataSource"]["S3DataType"] = "ManifestFile"
    said = reason(jobs.run("pass", channels=[wanted]))
    assert f"channel 'train', file://{manifest}: it names file://{data}/nowhere" in said
