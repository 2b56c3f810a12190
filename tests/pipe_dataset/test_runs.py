"""Which epoch is next, for every process of a job and for the job after it."""

import json
import os
import subprocess
import sys
import textwrap

import pytest
from pipe_dataset.framings import tf_record

pytestmark = pytest.mark.tf
ANOTHER = """
    import os
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    from scriptmode_runtime.tensorflow import PipeModeDataset
    print(list(PipeModeDataset("train", "TFRecord", timeout=60).as_numpy_iterator()))
"""


@pytest.fixture
def read(tf):
    from scriptmode_runtime.tensorflow import PipeModeDataset

    def listed(**arguments):
        return list(PipeModeDataset("train", "TFRecord", timeout=60, **arguments).as_numpy_iterator())

    return listed


def in_another_process():
    program = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(ANOTHER)]
    return subprocess.run(program, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


def test_another_process_of_the_job_goes_on_with_the_next_epoch(pipe_host, read):
    pipe_host.feed(tf_record(b"0"), tf_record(b"1"), tf_record(b"2"))
    assert read() == [b"0"]
    assert in_another_process() == "[b'1']"
    assert read() == [b"2"]


def test_another_job_in_the_same_folder_begins_with_the_first_epoch(pipe_host, read, monkeypatch):
    monkeypatch.setenv("TRAINING_JOB_NAME", "job-1")
    pipe_host.feed(tf_record(b"0"), tf_record(b"1"))
    assert [read(), read()] == [[b"0"], [b"1"]]
    monkeypatch.setenv("TRAINING_JOB_NAME", "job-2")
    pipe_host.feed(tf_record(b"again"))
    assert read() == [b"again"]


def test_a_job_whose_files_were_written_again_begins_with_the_first_epoch(pipe_host, read):
    pipe_host.feed(tf_record(b"0"), tf_record(b"1"))
    assert [read(), read()] == [[b"0"], [b"1"]]
    pipe_host.config.write_text(json.dumps({"train": {"TrainingInputMode": "Pipe"}}))
    pipe_host.feed(tf_record(b"again"))
    assert read() == [b"again"]


def test_a_first_fifo_that_was_created_again_is_the_first_epoch(pipe_host, read):
    pipe_host.feed(tf_record(b"0"), tf_record(b"1"))
    assert [read(), read()] == [[b"0"], [b"1"]]
    pipe_host.fed()
    for left in pipe_host.data.iterdir():
        left.unlink()
    pipe_host.feed(tf_record(b"again"), tf_record(b"and again"))
    assert [read(), read()] == [[b"again"], [b"and again"]]


def test_a_first_fifo_that_is_kept_is_read_once(pipe_host, read):
    pipe_host.feed(tf_record(b"0"), tf_record(b"1"))
    kept = pipe_host.data / "kept"
    os.link(pipe_host.fifo(0), kept)
    assert read() == [b"0"]
    pipe_host.gone(0)
    os.link(kept, pipe_host.data / "train_0")
    assert read() == [b"1"]


def test_what_a_killed_process_left_of_the_state_does_no_harm(pipe_host, read):
    state = pipe_host.base / "pipe_state" / "train"
    state.parent.mkdir()
    state.write_text("something\nels")
    pipe_host.feed(tf_record(b"0"))
    assert read() == [b"0"]


def test_a_state_that_cannot_be_kept_is_named(pipe_host, read, tf, tmp_path):
    (tmp_path / "file").touch()
    pipe_host.feed(tf_record(b"0"))
    with pytest.raises(tf.errors.OpError, match=r"file/below/train, which says what epoch is next.*state_dir names"):
        read(state_dir=str(tmp_path / "file" / "below"))
