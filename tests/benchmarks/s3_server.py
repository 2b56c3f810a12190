"""A real S3 server on this machine, and the process that feeds a pipe from it, for benchmarks."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fakes import seaweedfs

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What ``train`` jobs have for each pipe, in a process of its own; it serves epoch after epoch.
PRODUCER = """import sys
from pathlib import Path
from scriptmode.data import pipes
from scriptmode.data.prefetch import prefetch
from scriptmode.data.stores import Stores

uri, place = sys.argv[1], Path(sys.argv[2])
stores = Stores()
stores.prepare(uri)

def stream(epoch, waiting):
    for chunk in prefetch(stores.store_of, stores.store_of(uri).objects(uri), waiting=waiting):
        yield chunk.data

fifos = pipes.Fifos(place)
fifos.create(0)
pipes.feed(fifos, stream, pipes.PipeCounters())
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
