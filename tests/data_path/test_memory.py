"""What a channel holds in memory is bounded, whatever the sizes of its objects."""

import random
import subprocess
import sys

import pytest
from fakes.faulty_s3 import FaultyS3

MIB = 1024 * 1024
#: Reads as a producer does, slower than it is fetched, and wraps each object so that framing holds its share, too.
PRODUCE = """
import sys, time; from pathlib import Path
from scriptmode.data import framing, prefetch; from scriptmode.data.stores import Stores
stores, got = Stores(), 0
chunks = prefetch.prefetch(stores.store_of, stores.store_of(sys.argv[1]).objects(sys.argv[1]))
for data in framing.frame(chunks, is_gzipped=False, is_wrapped=True, spool=Path(sys.argv[2])):
    got += len(data)
    time.sleep(len(data) / 500e6)
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(got, peak)
"""
MIXES = {
    "the largest, then half of it": [8 * MIB] * 25 + [4 * MIB + 1] * 40,
    "each time less": [size for size in (8 * MIB, 7 * MIB, 5 * MIB, 3 * MIB, MIB, 300_000) for _ in range(150 * MIB // size)],
    "at random": [random.Random(9).randrange(1, 12 * MIB) for _ in range(100)],
    "small ones": [random.Random(9).randrange(1, 200_000) for _ in range(3_000)],
    "hardly any bytes": [4_096] * 20_000,
}  # fmt: skip


def produced(uri, spool):
    done = subprocess.run([sys.executable, "-c", PRODUCE, uri, spool], stdout=subprocess.PIPE, check=True, text=True)
    return [int(number) for number in done.stdout.split()]


@pytest.mark.slow
@pytest.mark.parametrize("sizes", MIXES.values(), ids=MIXES)
def test_a_producer_of_s3_objects_stays_below_its_bound(tmp_path, monkeypatch, no_credentials, sizes):
    content = memoryview(bytes(max(sizes)))
    with FaultyS3({f"{number:06}": content[:size] for number, size in enumerate(sizes)}) as server:
        server.use(monkeypatch)
        got, peak = produced("s3://bkt/", tmp_path)
    assert got >= sum(sizes)
    assert peak < 256 * 1024


@pytest.mark.slow
@pytest.mark.parametrize("sizes", MIXES.values(), ids=MIXES)
def test_a_producer_of_files_stays_below_its_bound(tmp_path, sizes):
    (tmp_path / "data").mkdir()
    for number, size in enumerate(sizes):
        with (tmp_path / f"data/{number:06}").open("wb") as file:
            file.truncate(size)
    got, peak = produced(f"file://{tmp_path}/data", tmp_path)
    assert got >= sum(sizes)
    assert peak < 256 * 1024
