"""Pipes without a writer, or without one yet, and which epoch is next for every process of a job."""

import gc
import json
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from fakes.promptness import soon
from pipe_dataset.framings import stream, tf_record

pytestmark = pytest.mark.tf


#: The longest that what is to come may be kept back.
GATE_SECONDS = 20


@pytest.fixture
def dataset(tf):
    from scriptmode_runtime.tensorflow import PipeModeDataset

    return lambda **arguments: PipeModeDataset("train", "TFRecord", **arguments)


@pytest.fixture
def gate():
    """Opened, it lets a feeder go on; it is open when the test is over."""
    opened = threading.Event()
    yield opened
    opened.set()


def then(gate, *parts):
    yield parts[0]
    gate.wait(GATE_SECONDS)
    yield from parts[1:]


CHANGES = {
    "none": lambda pipes: pipes,
    "prefetch": lambda pipes: pipes.prefetch(100),
    "map": lambda pipes: pipes.map(lambda records: records, num_parallel_calls=4).prefetch(100),
    "batch": lambda pipes: pipes.batch(5),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("batch_size", [None, 8])
@pytest.mark.prompt
def test_an_iterator_dropped_on_an_idle_pipe_does_not_wait_for_what_is_to_come(pipe_host, dataset, gate, change, batch_size):  # fmt: skip
    pipe_host.feed(then(gate, stream("TFRecord", [b"x"] * 60)), stream("TFRecord", [b"y"] * 8))
    gc.freeze()  # what other tests left, which takes a second to look through
    iterator = iter(change(dataset(batch_size=batch_size)))
    next(iterator)
    began = time.monotonic()
    del iterator
    gc.collect()
    took = time.monotonic() - began
    gc.unfreeze()
    soon(took, GATE_SECONDS / 4)
    gate.set()
    assert next(iter(dataset())).numpy() == b"y"


def test_records_arrive_when_they_are_written_and_not_when_the_pipe_is_full(pipe_host, dataset, gate):
    pipe_host.feed(then(gate, tf_record(b"1") + tf_record(b"2") + tf_record(b"3")[:9], tf_record(b"3")[9:]))
    iterator = dataset().as_numpy_iterator()
    assert [next(iterator), next(iterator)] == [b"1", b"2"]
    gate.set()
    assert list(iterator) == [b"3"]


@pytest.mark.prompt
def test_a_fifo_that_never_comes_is_an_error_in_time(pipe_host, dataset, tf):
    began = time.monotonic()
    with pytest.raises(tf.errors.OpError, match=r"channel 'train': .*train_0 did not come within 0.5 s"):
        list(dataset(timeout=0.5))
    took = time.monotonic() - began
    assert took >= 0.5
    soon(took, 3)


def test_a_fifo_without_a_writer_is_an_error_in_time(pipe_host, dataset, tf):
    pipe_host.fifo(0)
    with pytest.raises(tf.errors.OpError, match=r"nobody opened .*train_0 for writing within 0.5 s"):
        list(dataset(timeout=0.5))


def test_a_fifo_may_come_late(pipe_host, dataset):
    late = threading.Timer(0.4, pipe_host.feed, [tf_record(b"x")])
    late.start()
    assert list(dataset(timeout=20).as_numpy_iterator()) == [b"x"]
    late.join()


def test_a_slow_writer_has_all_the_time_it_needs(pipe_host, dataset):
    def slowly():
        yield b""
        for _ in range(4):
            time.sleep(0.25)  # the pace of the writer is what is tested
            yield tf_record(b"x")

    pipe_host.feed(slowly())
    assert list(dataset(timeout=0.2).as_numpy_iterator()) == [b"x"] * 4


@pytest.mark.prompt
def test_an_idle_pipe_does_not_block_computation(pipe_host, dataset, tf, gate):
    pipe_host.channels(train="Pipe", a="Pipe", b="Pipe", c="Pipe")
    from scriptmode_runtime.tensorflow import PipeModeDataset

    waiting = []
    for channel in "abc":
        pipe_host.feed(then(gate, tf_record(b"x")), channel=channel)
        waiting.append(iter(PipeModeDataset(channel, "TFRecord").prefetch(2)))
        next(waiting[-1])

    @tf.function
    def compute(value):
        return tf.reduce_sum(tf.stack([tf.linalg.trace(value) + float(number) for number in range(8)]))

    value = tf.random.uniform([50, 50])
    compute(value)
    began = time.monotonic()
    for _ in range(100):
        compute(value)
    soon(time.monotonic() - began, 2)


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


def test_another_process_of_the_job_goes_on_with_the_next_epoch(pipe_host, read):
    pipe_host.feed(tf_record(b"0"), tf_record(b"1"), tf_record(b"2"))
    assert read() == [b"0"]
    program = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(ANOTHER)]
    done = subprocess.run(program, check=True, capture_output=True, text=True, timeout=600)
    assert done.stdout.strip() == "[b'1']"
    assert read() == [b"2"]


@pytest.mark.parametrize("change", ["another name", "files written again"])
def test_another_job_in_the_same_folder_begins_with_the_first_epoch(pipe_host, read, monkeypatch, change):
    monkeypatch.setenv("TRAINING_JOB_NAME", "job-1")
    pipe_host.feed(tf_record(b"0"), tf_record(b"1"))
    assert [read(), read()] == [[b"0"], [b"1"]]
    if change == "another name":
        monkeypatch.setenv("TRAINING_JOB_NAME", "job-2")
    else:
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
