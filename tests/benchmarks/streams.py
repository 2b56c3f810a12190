"""S3 to a FIFO and to files, against curl, from a real S3 server (SeaweedFS) on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Callable, NamedTuple

from tests.benchmarks.figures import Figure, amount, in_turn
from tests.fakes import seaweedfs

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What ``train`` jobs have for each pipe, in a process of its own; it serves epoch after epoch.
PRODUCER = """import sys
from pathlib import Path
from scriptmode_local._data import large_objects, pipes
from scriptmode_local._data.stores import Stores

uri, place = sys.argv[1], Path(sys.argv[2])
stores = Stores()
stores.prepare(uri)

def stream(epoch, waiting):
    return large_objects.stream(stores.store_of, stores.store_of(uri).objects(uri), waiting=waiting)

fifos = pipes.Fifos(place)
fifos.create(0)
pipes.feed(fifos, stream, [0, 0])
"""


@contextmanager
def server(folder: Path) -> Iterator[object]:
    """A running server that the environment names; boto3's client of it."""
    folder.mkdir()
    with seaweedfs.running(folder) as (endpoint, client):
        os.environ.update(
            AWS_ENDPOINT_URL=endpoint,
            AWS_ACCESS_KEY_ID=seaweedfs.ACCESS_KEY,
            AWS_SECRET_ACCESS_KEY=seaweedfs.SECRET_KEY,
            AWS_DEFAULT_REGION="us-east-1",
        )
        yield client


class Producer:
    """A process that feeds the pipe of a channel at ``place``, epoch after epoch."""

    def __init__(self, process: subprocess.Popen[bytes], place: Path) -> None:
        self._process = process
        self._place = place
        self._epoch = 0

    def through_cat(self) -> float:
        """Return the seconds in which ``cat`` reads the next epoch."""
        fifo = self._place.with_name(f"{self._place.name}_{self._epoch}")
        self._epoch += 1
        deadline = time.monotonic() + 20
        while not fifo.exists():
            assert self._process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.001)
        return timed("/bin/sh", "-c", 'cat "$0" >/dev/null', str(fifo))

    def peak_mebibytes(self) -> float:
        """Return the peak memory of the process."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


@contextmanager
def producer(uri: str, place: Path) -> Iterator[Producer]:
    """Feed the pipe at ``place`` with the objects whose URIs begin with ``uri``."""
    process = subprocess.Popen((sys.executable, "-c", PRODUCER, uri, str(place)))
    try:
        yield Producer(process, place)
    finally:
        process.kill()
        process.wait()


def timed(*command: str) -> float:
    """Run a command; give the seconds it took."""
    began = time.monotonic()
    subprocess.run(command, check=True, timeout=300)
    return time.monotonic() - began


class Kind(NamedTuple):
    """Objects of one size in bytes, below one prefix."""

    prefix: str
    title: str
    count: int
    size: int


LARGE_KIND = Kind("large", "8 objects of 128 MiB", amount(8, smallest=2), amount(128, smallest=9) * 1024 * 1024)
SMALL_KIND = Kind("small", "2,000 objects of 100 KB", amount(2_000, smallest=20), 100_000)
RUNS = 3


def run(folder: str) -> list[Figure]:
    place = Path(folder)
    with server(place / "s3") as client:
        _fill(client)
        return [
            *_large_pipe(place), *_small_pipe(place), *_files(place, LARGE_KIND, 1.0),
            *_files(place, SMALL_KIND, 0.7),
        ]  # fmt: skip


def _fill(client) -> None:
    client.create_bucket(Bucket="bench")
    with tempfile.NamedTemporaryFile() as file:
        file.write(os.urandom(LARGE_KIND.size))
        file.flush()
        for number in range(LARGE_KIND.count):
            # In parts, as every client stores an object of this size.
            client.upload_file(file.name, "bench", f"large/{number:05}")
    content = os.urandom(SMALL_KIND.size)
    for number in range(SMALL_KIND.count):
        client.put_object(Bucket="bench", Key=f"small/{number:05}", Body=content)


def _large_pipe(folder: Path) -> list[Figure]:
    with producer("s3://bench/large/", folder / "large") as feeding:
        return [
            _against_curl(LARGE_KIND, feeding.through_cat, 0.9),
            Figure("peak memory of the producer of 4 GiB", feeding.peak_mebibytes(), "MiB", 256),
        ]


def _small_pipe(folder: Path) -> list[Figure]:
    with producer("s3://bench/small/", folder / "small") as feeding:
        return [_against_curl(SMALL_KIND, feeding.through_cat, 1.5)]


def _against_curl(kind: Kind, stream: Callable[[], float], bound: float) -> Figure:
    curl, ours = in_turn(RUNS, lambda: timed(*_curl(kind), "-o", "/dev/null"), stream)
    return Figure(f"{kind.title}: curl to /dev/null / S3 to FIFO to cat", curl / ours, "x", bound, at_most=False)


def _files(folder: Path, kind: Kind, bound: float) -> list[Figure]:
    target = folder / "files"
    curl, ours = in_turn(
        RUNS,
        lambda: _into(target, lambda: timed(*_curl(kind), "-Z", "-o", f"{target}/#1")),
        lambda: _into(target, lambda: _fetched(kind, target)),
    )
    return [Figure(f"{kind.title} as files: curl -Z / File mode", curl / ours, "x", bound, at_most=False)]


def _into(target: Path, fetch: Callable[[], float]) -> float:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    return fetch()


def _fetched(kind: Kind, target: Path) -> float:
    from scriptmode_local._data import staging
    from scriptmode_local._data.stores import Stores

    stores, prefix = Stores(), f"s3://bench/{kind.prefix}/"
    stores.prepare(prefix)
    began = time.monotonic()
    found = ((item, item.uri[len(prefix) :]) for item in stores.store_of(prefix).objects(prefix))
    staging.fetch(found, target, lambda *_: None, stores=stores)
    return time.monotonic() - began


def _curl(kind: Kind) -> tuple[str, ...]:
    user = f"{seaweedfs.ACCESS_KEY}:{seaweedfs.SECRET_KEY}"
    urls = f"{os.environ['AWS_ENDPOINT_URL']}/bench/{kind.prefix}/[00000-{kind.count - 1:05}]"
    return ("curl", "-sS", "--fail", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", user, urls)
