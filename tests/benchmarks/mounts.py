"""A FastFile mount of objects in memory: this project's FUSE protocol against mfusepy over libfuse3, in turn.

CPU is that of the process that serves the mount.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from tests.benchmarks.figures import SMALLEST_VARIABLE, Figure, amount
from tests.references import environment

from scriptmode.data import fast_file, mounts
from scriptmode.data.object_store import StoredObject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode.data.fuse_server import Tree

MFUSEPY = "mfusepy==3.1.1"
MIB = 1024 * 1024
PAIRS = amount(5, smallest=1)
LARGE = amount(512, smallest=8) * MIB
#: Reads of 4 KiB at random offsets.
RANDOM_READS = amount(5_000, smallest=50)
READERS = 64
#: Bytes of the file of each reader.
SHARE = amount(16, smallest=1) * MIB
SMALL_FILES = amount(2_000, smallest=20)
SMALL = 100_000
#: Time limit of a task, in seconds.
TIMEOUT = 120
RANDOM_PROGRAM = """
import os, random, sys
file, size, count = os.open(sys.argv[1], os.O_RDONLY), int(sys.argv[2]), int(sys.argv[3])
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
random.seed(1)
for _ in range(count):
    os.pread(file, 4096, random.randrange(size // 4096) * 4096)
"""


class Taken(NamedTuple):
    """What one task took: seconds on the clock, and CPU seconds of the process that serves the mount."""

    seconds: float
    cpu: float


class Memory:
    """An `ObjectStore` whose objects are parts of one buffer, so that reading them costs nothing."""

    content = memoryview(random.Random(1).randbytes(17 * MIB))

    def read(self, item: StoredObject, start: int, end: int) -> tuple[memoryview, ...]:
        del item
        at = start % MIB
        return (self.content[at : at + end - start],)


def run(folder: str) -> list[Figure]:
    packages = next((environment(MFUSEPY).parent / "lib").glob("python*/site-packages"))
    ways: dict[str, Callable[[Tree, Path], None]] = {
        "own": lambda tree, point: fast_file.mount(tree, point, print, lambda: None),
        "mfusepy": lambda tree, point: _mount_by_mfusepy(packages, tree, point),
    }
    taken: dict[str, list[dict[str, Taken]]] = {way: [] for way in ways}
    warm_up = 0 if SMALLEST_VARIABLE in os.environ else 1
    for number in range(PAIRS + warm_up):
        for way in sorted(ways, reverse=bool(number % 2)):
            measured = _measure(ways[way], Path(folder) / f"{way}-{number}")
            if number >= warm_up:
                taken[way].append(measured)
    return [figure for task in taken["own"][0] for figure in _figures(task, taken)]


def _figures(task: str, taken: dict[str, list[dict[str, Taken]]]) -> Iterator[Figure]:
    pairs = [(own[task], other[task]) for own, other in zip(taken["own"], taken["mfusepy"])]
    for what, index in (("time", 0), ("CPU", 1)):
        own = statistics.median(pair[0][index] for pair in pairs)
        yield Figure(f"{task}: {what}", own, "s")
        yield Figure(f"{task}: {what}, mfusepy / own", statistics.median(b[index] / a[index] for a, b in pairs), "x")


def _measure(mount: Callable[[Tree, Path], None], point: Path) -> dict[str, Taken]:
    point.mkdir()
    began = time.monotonic()
    with _mounted(mount, point) as pid:
        names = {path.name for path in point.iterdir()}
        found = {"mount to first listing": Taken(time.monotonic() - began, _cpu_seconds(pid))}
        assert names == {"large", "shares", "small"}

        def take(task: str, *commands: tuple[Any, ...]) -> None:
            before, start = _cpu_seconds(pid), time.monotonic()
            running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
            # A reader of a mount whose server failed would wait forever.
            assert [process.wait(TIMEOUT) for process in running] == [0] * len(running)
            found[task] = Taken(time.monotonic() - start, _cpu_seconds(pid) - before)

        # First of all: it reads nothing that is cached.
        take(
            f"{RANDOM_READS:,} reads of 4 KiB",
            (sys.executable, "-c", RANDOM_PROGRAM, point / "large", str(LARGE), str(RANDOM_READS)),
        )
        take(f"{LARGE // MIB} MiB in sequence", ("dd", f"if={point / 'large'}", "of=/dev/null", "bs=1M", "status=none"))
        take(f"{READERS} readers of {SHARE // MIB} MiB", *(("cat", path) for path in _paths(point / "shares", READERS)))
        take(f"ls -l of {SMALL_FILES:,} files", ("ls", "-l", point / "small"))
        take(f"{SMALL_FILES:,} files of 100 KB", ("cat", *_paths(point / "small", SMALL_FILES)))
    return found


def _paths(folder: Path, count: int) -> list[Path]:
    return [folder / f"{number:05}" for number in range(count)]


@contextmanager
def _mounted(mount: Callable[[Tree, Path], None], point: Path) -> Iterator[int]:
    """Serve a mount in a child until the block ends; yield its process ID."""
    pid = os.fork()
    if pid == 0:
        try:
            mount(fast_file.ObjectTree(_entries(), lambda _: Memory()), point)
        finally:
            os._exit(1)
    try:
        while not mounts.mounted_below(point):
            time.sleep(0.001)
        yield pid
    finally:
        mounts.detach(point)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def _entries() -> list[tuple[StoredObject, str]]:
    sizes = {"large": LARGE}
    sizes.update({f"shares/{path.name}": SHARE for path in _paths(Path(), READERS)})
    sizes.update({f"small/{path.name}": SMALL for path in _paths(Path(), SMALL_FILES)})
    return [(StoredObject(f"memory://{name}", size), name) for name, size in sizes.items()]


def _cpu_seconds(pid: int) -> float:
    # clock_getcpuclockid(3): the CPU clock of another process.
    return time.clock_gettime(~pid << 3 | 2)


def _mount_by_mfusepy(packages: Path, tree: Tree, point: Path) -> None:
    sys.path.insert(0, str(packages))
    # Otherwise it prefers libfuse 2.
    os.environ["FUSE_LIBRARY_NAME"] = "fuse3"
    from tests.benchmarks import mfusepy_mount

    mfusepy_mount.mount(tree, point)
