"""S3 to a FIFO and to files, against curl and others, from a real S3 server (SeaweedFS) on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from tests import conftest
from tests.benchmarks.figures import Figure, in_turn

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGE, LARGE_BYTES = 8, 128 * 1024 * 1024
SMALL, SMALL_BYTES = 2_000, 100_000
RUNS = 5
#: What ``train`` jobs have for each pipe, in a process of its own; it serves epoch after epoch.
PRODUCER = """import sys
from pathlib import Path
from scriptmode.platforms.local.data import pipes
from scriptmode.platforms.local.data.read_ahead import read_ahead
from scriptmode.platforms.local.data.stores import Stores

uri, place = sys.argv[1], Path(sys.argv[2])
stores = Stores()
stores.prepare(uri)

def stream(epoch):
    for chunk in read_ahead(stores.of, stores.of(uri).objects(uri)):
        yield chunk.data

pipes.make(place, 0)
pipes.feed(place, stream, pipes.Gauge())
"""


def run(folder: str) -> list[Figure]:
    with _server(Path(folder) / "s3") as client:
        _fill(client)
        return [*_pipes(Path(folder)), *_files(Path(folder))]


@contextmanager
def _server(folder: Path) -> Iterator[object]:
    """A running server that the environment names; boto3's client of it."""
    folder.mkdir()
    ports = conftest._free_ports(8)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(conftest._weed(folder, ports), stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    endpoint = f"http://127.0.0.1:{ports[6]}"
    os.environ.update(
        AWS_ENDPOINT_URL=endpoint,
        AWS_ACCESS_KEY_ID=conftest.ACCESS_KEY,
        AWS_SECRET_ACCESS_KEY=conftest.SECRET_KEY,
        AWS_DEFAULT_REGION="us-east-1",
    )
    try:
        yield conftest._connect(endpoint, process, folder / "log")
    finally:
        process.kill()
        process.wait()


def _fill(client) -> None:
    client.create_bucket(Bucket="bench")
    with tempfile.NamedTemporaryFile() as file:
        file.write(os.urandom(LARGE_BYTES))
        file.flush()
        for number in range(LARGE):
            # In parts, as every client stores an object of this size.
            client.upload_file(file.name, "bench", f"large/{number:05}")
    content = os.urandom(SMALL_BYTES)
    for number in range(SMALL):
        client.put_object(Bucket="bench", Key=f"small/{number:05}", Body=content)


def _pipes(folder: Path) -> list[Figure]:
    figures = []
    for kind, count, bound in (("large", LARGE, 0.9), ("small", SMALL, 1.5)):
        with _producer(folder, kind) as (peak, stream):
            curl, through, ours = in_turn(
                RUNS,
                lambda: _timed(*_curl(kind, count), "-o", "/dev/null"),
                lambda: _timed("/bin/sh", "-c", '"$@" | cat >/dev/null', "sh", *_curl(kind, count)),
                stream,
            )
            name = {"large": f"{LARGE} objects of 128 MiB", "small": f"{SMALL:,} objects of 100 KB"}[kind]
            figures += [
                Figure(f"{name}, S3 to FIFO to cat / curl to /dev/null", curl / ours, "x", bound, at_most=False),
                Figure(f"{name}, S3 to FIFO to cat / curl to cat", through / ours, "x"),
            ]
            if kind == "large":
                figures.append(Figure("S3 to FIFO, large objects", LARGE * LARGE_BYTES / ours / 1e6, "MB/s"))
                while peak.streamed < 10e9:
                    stream()
                figures.append(Figure("peak memory of the producer of 10 GB", peak.memory(), "MiB", 256))
            else:
                figures.append(Figure("S3 to FIFO, objects of 100 KB", SMALL / ours, "/s"))
    return figures


class _Peak:
    """A producer's peak memory, and the bytes it streamed until then."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.streamed = 0

    def memory(self) -> float:
        lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


@contextmanager
def _producer(folder: Path, kind: str) -> Iterator[tuple[_Peak, Callable[[], float]]]:
    place = folder / kind
    process = subprocess.Popen((sys.executable, "-c", PRODUCER, f"s3://bench/{kind}/", place))
    peak, epoch = _Peak(process.pid), iter(range(1_000))

    def stream() -> float:
        fifo = place.with_name(f"{kind}_{next(epoch)}")
        deadline = time.monotonic() + 20
        while not fifo.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.001)
        taken = _timed("/bin/sh", "-c", 'cat "$0" >/dev/null', str(fifo))
        peak.streamed += LARGE * LARGE_BYTES if kind == "large" else SMALL * SMALL_BYTES
        return taken

    try:
        yield peak, stream
    finally:
        process.kill()
        process.wait()


def _files(folder: Path) -> list[Figure]:
    figures = []
    for kind, count, bound in (("large", LARGE, 1.0), ("small", SMALL, 0.7)):
        target = folder / "files"
        rivals = {"boto3's TransferManager": lambda kind=kind: _boto3(kind, target)}
        s5cmd = shutil.which("s5cmd")
        if s5cmd:
            command = (
                s5cmd,
                "--endpoint-url",
                os.environ["AWS_ENDPOINT_URL"],
                "cp",
                f"s3://bench/{kind}/*",
                f"{target}/",
            )
            rivals["s5cmd"] = lambda command=command: _into(target, lambda: _timed(*command))
        curl, ours, *others = in_turn(
            RUNS,
            lambda: _into(target, lambda: _timed(*_curl(kind, count), "-Z", "-o", f"{target}/#1")),
            lambda: _into(target, lambda: _fetched(kind, target)),
            *rivals.values(),
        )
        name = {"large": "large objects", "small": "objects of 100 KB"}[kind]
        figures.append(Figure(f"File mode, {name} / curl -Z", curl / ours, "x", bound, at_most=False))
        figures += [Figure(f"File mode, {name} / {rival}", taken / ours, "x") for rival, taken in zip(rivals, others)]
    return figures


def _into(target: Path, fetch: Callable[[], float]) -> float:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    return fetch()


def _fetched(kind: str, target: Path) -> float:
    from scriptmode.platforms.local.data import staging
    from scriptmode.platforms.local.data.stores import Stores

    stores, prefix = Stores(), f"s3://bench/{kind}/"
    stores.prepare(prefix)
    began = time.monotonic()
    found = ((item, item.uri[len(prefix) :]) for item in stores.of(prefix).objects(prefix))
    staging.fetch(found, target, lambda done, total: None, stores=stores)
    return time.monotonic() - began


def _boto3(kind: str, target: Path) -> float:
    import boto3
    from boto3.s3.transfer import TransferConfig, create_transfer_manager

    client = boto3.client("s3")

    def fetch() -> float:
        began = time.monotonic()
        with create_transfer_manager(client, TransferConfig(max_concurrency=16)) as transfers:
            for page in client.get_paginator("list_objects_v2").paginate(Bucket="bench", Prefix=f"{kind}/"):
                for item in page["Contents"]:
                    transfers.download("bench", item["Key"], str(target / item["Key"].rpartition("/")[2]))
        return time.monotonic() - began

    return _into(target, fetch)


def _curl(kind: str, count: int) -> tuple[str, ...]:
    user = f"{conftest.ACCESS_KEY}:{conftest.SECRET_KEY}"
    urls = f"{os.environ['AWS_ENDPOINT_URL']}/bench/{kind}/[00000-{count - 1:05}]"
    return ("curl", "-sS", "--fail", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", user, urls)


def _timed(*command: str) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True, timeout=300, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began
