"""S3 to a FIFO and to files, against curl and others, from a real S3 server (SeaweedFS) on this machine."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Callable, NamedTuple

from tests.benchmarks.figures import Figure, amount, in_turn
from tests.benchmarks.s3_server import producer, server, timed
from tests.fakes import seaweedfs


class Kind(NamedTuple):
    """Objects of one size in bytes, below one prefix."""

    prefix: str
    title: str
    count: int
    size: int


LARGE_KIND = Kind("large", "8 objects of 128 MiB", amount(8, smallest=2), amount(128, smallest=9) * 1024 * 1024)
SMALL_KIND = Kind("small", "2,000 objects of 100 KB", amount(2_000, smallest=20), 100_000)
RUNS = 5
TEN_GB = amount(10**10, smallest=0)


def run(folder: str) -> list[Figure]:
    place = Path(folder)
    with server(place / "s3") as client:
        _fill(client)
        return [
            *_large_pipe(place),
            *_small_pipe(place),
            *_files(place, LARGE_KIND, 1.0),
            *_files(place, SMALL_KIND, 0.7),
        ]


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
        taken, figures = _against_curl(LARGE_KIND, feeding.through_cat, 0.9)
        # With those that warmed up.
        for _ in range(RUNS + 1, TEN_GB // (LARGE_KIND.count * LARGE_KIND.size) + 1):
            feeding.through_cat()
        return [
            *figures,
            Figure("S3 to FIFO, large objects", LARGE_KIND.count * LARGE_KIND.size / taken / 1e6, "MB/s"),
            Figure("peak memory of the producer of 10 GB", feeding.peak_mebibytes(), "MiB", 256),
        ]


def _small_pipe(folder: Path) -> list[Figure]:
    with producer("s3://bench/small/", folder / "small") as feeding:
        taken, figures = _against_curl(SMALL_KIND, feeding.through_cat, 1.5)
        return [*figures, Figure("S3 to FIFO, objects of 100 KB", SMALL_KIND.count / taken, "/s")]


def _against_curl(kind: Kind, stream: Callable[[], float], bound: float) -> tuple[float, list[Figure]]:
    curl, through, ours = in_turn(
        RUNS,
        lambda: timed(*_curl(kind), "-o", "/dev/null"),
        lambda: timed("/bin/sh", "-c", '"$@" | cat >/dev/null', "sh", *_curl(kind)),
        stream,
    )
    return ours, [
        Figure(f"{kind.title}: curl to /dev/null / S3 to FIFO to cat", curl / ours, "x", bound, at_most=False),
        Figure(f"{kind.title}: curl to cat / S3 to FIFO to cat", through / ours, "x"),
    ]


def _files(folder: Path, kind: Kind, bound: float) -> list[Figure]:
    target = folder / "files"
    rivals = {"boto3's TransferManager": lambda: _boto3(kind, target)}
    s5cmd = shutil.which("s5cmd")
    if s5cmd:
        source = f"s3://bench/{kind.prefix}/*"
        command = (s5cmd, "--endpoint-url", os.environ["AWS_ENDPOINT_URL"], "cp", source, f"{target}/")
        rivals["s5cmd"] = lambda: _into(target, lambda: timed(*command))
    curl, ours, *others = in_turn(
        RUNS,
        lambda: _into(target, lambda: timed(*_curl(kind), "-Z", "-o", f"{target}/#1")),
        lambda: _into(target, lambda: _fetched(kind, target)),
        *rivals.values(),
    )
    title = f"{kind.title} as files"
    figures = [Figure(f"{title}: curl -Z / File mode", curl / ours, "x", bound, at_most=False)]
    return figures + [
        Figure(f"{title}: {rival} / File mode", taken / ours, "x") for rival, taken in zip(rivals, others)
    ]


def _into(target: Path, fetch: Callable[[], float]) -> float:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    return fetch()


def _fetched(kind: Kind, target: Path) -> float:
    from scriptmode.data import staging
    from scriptmode.data.stores import Stores

    stores, prefix = Stores(), f"s3://bench/{kind.prefix}/"
    stores.prepare(prefix)
    began = time.monotonic()
    found = ((item, item.uri[len(prefix) :]) for item in stores.store_of(prefix).objects(prefix))
    staging.fetch(found, target, lambda *_: None, stores=stores)
    return time.monotonic() - began


def _boto3(kind: Kind, target: Path) -> float:
    import boto3
    from boto3.s3.transfer import TransferConfig, create_transfer_manager

    client = boto3.client("s3")

    def fetch() -> float:
        began = time.monotonic()
        with create_transfer_manager(client, TransferConfig(max_concurrency=16)) as transfers:
            for page in client.get_paginator("list_objects_v2").paginate(Bucket="bench", Prefix=f"{kind.prefix}/"):
                for item in page["Contents"]:
                    transfers.download("bench", item["Key"], str(target / item["Key"].rpartition("/")[2]))
        return time.monotonic() - began

    return _into(target, fetch)


def _curl(kind: Kind) -> tuple[str, ...]:
    user = f"{seaweedfs.ACCESS_KEY}:{seaweedfs.SECRET_KEY}"
    urls = f"{os.environ['AWS_ENDPOINT_URL']}/bench/{kind.prefix}/[00000-{kind.count - 1:05}]"
    return ("curl", "-sS", "--fail", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", user, urls)
