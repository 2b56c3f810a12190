"""An epoch a FIFO, on real FIFOs with a real producer."""

import json
import select
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.processes import until

FEEDER = Path(__file__).with_name("feeder.py")
LONG = 200_000


@pytest.fixture
def feeder(tmp_path):
    """Start a producer of the given epochs; give its place and process."""
    started = []

    def start(*plan):
        place = tmp_path / "data" / "train"
        command = [sys.executable, str(FEEDER), str(place), json.dumps(plan)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return place, process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def read(place, epoch):
    with Path(f"{place}_{epoch}").open("rb") as fifo:
        return fifo.read().decode()


def test_each_epoch_has_its_own_fifo(feeder):
    place, _ = feeder(["a", "b"], [], ["", "c"], [LONG])
    assert [read(place, epoch) for epoch in range(5)] == ["ab", "", "c", "x" * LONG, "x" * LONG]


def test_the_next_fifo_exists_before_the_first_byte_and_an_ended_one_is_removed(feeder):
    place, _ = feeder(["a"])
    assert min(path.name for path in place.parent.iterdir() if path.is_fifo()) == "train_0"
    with Path(f"{place}_0").open("rb") as fifo:
        assert fifo.read(1) == b"a"
        assert Path(f"{place}_1").is_fifo()
        assert fifo.read() == b""
    until(lambda: not Path(f"{place}_0").exists())
    with pytest.raises(FileNotFoundError):
        read(place, 0)


def test_a_reader_that_closes_early_ends_the_epoch_and_its_downloads(feeder):
    place, process = feeder(["first", *[LONG] * 100])
    for epoch in range(3):
        with Path(f"{place}_{epoch}").open("rb") as fifo:
            assert fifo.read(5) == b"first"
        assert process.stdout.readline() == f"epoch {epoch} ended, {epoch + 1} opened\n"


def test_a_failed_source_does_not_look_like_the_end_of_the_epoch(feeder):
    place, process = feeder(["whole", None])
    with Path(f"{place}_0").open("rb", buffering=0) as fifo:
        assert fifo.read(5) == b"whole"
        assert process.stdout.readline() == "epoch 0 ended, 1 opened\n"
        assert process.stdout.readline() == "error s3://b/k: the object is gone\n"
        assert select.select([fifo], [], [], 0.2)[0] == []
        process.kill()
        assert select.select([fifo], [], [], 10)[0] == [fifo]


@pytest.mark.parametrize("rest", [[False], [LONG * 20, None]], ids=["no bytes come", "an error comes"])
def test_a_reader_that_closes_ends_the_epoch_and_no_later_error_counts(feeder, rest):
    place, process = feeder(["first", *rest], ["second"])
    with Path(f"{place}_0").open("rb") as fifo:
        assert fifo.read(5) == b"first"
    assert process.stdout.readline() == "epoch 0 ended, 1 opened\n"
    assert read(place, 1) == "second"


def test_the_pipe_holds_a_mebibyte(feeder):
    import fcntl

    place, _ = feeder([LONG])
    with Path(f"{place}_0").open("rb") as fifo:
        assert fifo.read(1) == b"x"
        assert fcntl.fcntl(fifo, 1032) == 1024 * 1024
