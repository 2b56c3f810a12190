"""A job that logs 1,000 lines a second for 12 s, followed in the live view of a terminal, and in plain lines.

Another one has 8 hosts of 3 processes, whose resources are sampled.
"""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.figures import Figure, amount
from tests.fakes.processes import until

from scriptmode import Estimator, TrainingJob, TrainingJobStopped
from scriptmode_runtime.processes import system

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds of logging, until every follower is up, and of the measurement.
LASTS, WARM, MEASURED = amount(12, smallest=6), amount(3, smallest=2), amount(8, smallest=1)
LINES_A_SECOND = 1000
SCRIPT = f"""import sys, time
began = time.monotonic()
for number in range({LINES_A_SECOND * LASTS}):
    print(f"step {{number:06d}}: loss={{2 / (1 + number / 500):.4f}} accuracy={{number / 12000:.4f}} and some more words")
    if number % 10 == 9:
        sys.stdout.flush()
        time.sleep(max(0, began + number / {LINES_A_SECOND} - time.monotonic()))
"""
HOSTS = 8
IDLE = """import subprocess, time
children = [subprocess.Popen(["sleep", "3600"]) for _ in range(2)]
print("up", flush=True)
time.sleep(3600)
"""
METRICS = [{"Name": name, "Regex": f"{name}=([0-9.]+)"} for name in ("loss", "accuracy")]


def run(folder: str) -> list[Figure]:
    script = Path(folder) / "logs.py"
    script.write_text(SCRIPT)
    job = Estimator(entry_point=str(script), instance_type="local_process", metric_definitions=METRICS).fit(wait=False)
    until(lambda: any(True for _ in job.logs()))
    live, plain, silent = costs(job, "live", "plain", "silent")
    job.wait()
    return [
        Figure("live view at 1,000 log lines/s, reading included, of a core", 100 * live, "%", 2),
        Figure("plain lines at 1,000 log lines/s, of a core", 100 * plain, "%"),
        Figure("waiting without the log, of a core", 100 * silent, "%"),
        Figure(f"sampling the resources of {HOSTS} hosts, of a core", 100 * sampling(Path(folder)), "%", 1),
    ]


def sampling(folder: Path) -> float:
    """Return the CPU seconds that sampling a job's resources takes in a second: those of a child of the host's agent."""
    script = folder / "idle.py"
    script.write_text(IDLE)
    job = Estimator(entry_point=str(script), instance_type="local_process", instance_count=HOSTS).fit(wait=False)
    try:
        until(lambda: len(job.activity()) == HOSTS and sum(line.message == "up" for line in job.logs()) == HOSTS)
        (sampler,) = (pid for pid in system.processes() if is_sampler(pid, job))
        time.sleep(WARM)
        before, began = cpu_seconds(sampler), time.monotonic()
        time.sleep(2 * MEASURED)
        return (cpu_seconds(sampler) - before) / (time.monotonic() - began)
    finally:
        job.stop()
        with suppress(TrainingJobStopped):
            job.wait()


def is_sampler(pid: int, job: TrainingJob) -> bool:
    """Return whether a process is a fork of the host's agent, which is a fork of the job's agent."""
    words, found = system.command_line(pid), system.process(pid)
    if not found or not any(word.endswith(f"/jobs/{job.name}") for word in words):
        return False
    agent = system.process(found.parent)
    return agent is not None and system.command_line(found.parent) == system.command_line(agent.parent) == words


def costs(job: TrainingJob, *views: str) -> list[float]:
    """Follow a job in several processes; give the CPU seconds that each takes in a second once it is up."""
    with following(job, views) as processes:
        time.sleep(WARM)
        before = [cpu_seconds(process.pid) for process in processes]
        began = time.monotonic()
        time.sleep(MEASURED)
        after = [cpu_seconds(process.pid) for process in processes]
        return [(end - start) / (time.monotonic() - began) for start, end in zip(before, after)]


@contextmanager
def following(job: TrainingJob, views: tuple[str, ...]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Follow a job in a terminal of its own for each view."""
    processes = []
    for view in views:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        program = (
            f"from scriptmode import TrainingJob; TrainingJob.attach({job.name!r}).follow(logs={view != 'silent'})"
        )
        variables = {**os.environ, "TERM": "xterm-256color", "SCRIPTMODE_VIEW": "plain" if view == "plain" else "live"}
        processes.append(subprocess.Popen((sys.executable, "-c", program), stdout=theirs, env=variables))
        os.close(theirs)
        threading.Thread(target=drain, args=(ours,), daemon=True).start()
    try:
        yield processes
    finally:
        for process in processes:
            process.wait(60)


def drain(terminal: int) -> None:
    with suppress(OSError):
        while os.read(terminal, 65536):
            pass


def cpu_seconds(pid: int) -> float:
    """Return the seconds that all threads of a process ran (schedstat, proc(5), counts nanoseconds)."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
