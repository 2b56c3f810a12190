"""A job that logs 1,000 lines a second for 10 s, followed in the live view of a terminal, and in plain lines."""

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
from contextlib import suppress
from pathlib import Path

from tests.benchmarks.figures import Figure, amount
from tests.fakes.processes import until

from scriptmode import Estimator, TrainingJob

#: Seconds of logging, until every follower is up, and of the measurement.
LASTS, WARM, MEASURED = amount(10, smallest=6), amount(3, smallest=2), amount(6, smallest=1)
LINES_A_SECOND = 1000
SCRIPT = f"""import sys, time
began = time.monotonic()
for number in range({LINES_A_SECOND * LASTS}):
    print(f"step {{number:06d}}: loss={{2 / (1 + number / 500):.4f}} accuracy={{number / 12000:.4f}} and some more words")
    if number % 10 == 9:
        sys.stdout.flush()
        time.sleep(max(0, began + number / {LINES_A_SECOND} - time.monotonic()))
"""
METRICS = [{"Name": name, "Regex": f"{name}=([0-9.]+)"} for name in ("loss", "accuracy")]


def run(folder: str) -> list[Figure]:
    script = Path(folder) / "logs.py"
    script.write_text(SCRIPT)
    job = Estimator(entry_point=str(script), instance_type="local_process", metric_definitions=METRICS).fit(wait=False)
    until(lambda: any(True for _ in job.logs()))
    live, plain = costs(job, "live", "plain")
    job.wait()
    return [
        Figure("live view at 1,000 log lines/s, reading included, of a core", 100 * live, "%", 2),
        Figure("plain lines at 1,000 log lines/s, of a core", 100 * plain, "%"),
    ]


def costs(job: TrainingJob, *views: str) -> list[float]:
    """Follow a job in a terminal for each view; return the CPU seconds that each takes in a second once it is up."""
    processes = []
    for view in views:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        program = f"from scriptmode import TrainingJob; TrainingJob.attach({job.name!r}).follow()"
        variables = {**os.environ, "TERM": "xterm-256color", "SCRIPTMODE_VIEW": view}
        processes.append(subprocess.Popen((sys.executable, "-c", program), stdout=theirs, env=variables))
        os.close(theirs)
        threading.Thread(target=drain, args=(ours,), daemon=True).start()
    time.sleep(WARM)
    before = [cpu_seconds(process.pid) for process in processes]
    began = time.monotonic()
    time.sleep(MEASURED)
    after = [cpu_seconds(process.pid) for process in processes]
    taken = time.monotonic() - began
    for process in processes:
        process.wait(600)
    return [(end - start) / taken for start, end in zip(before, after)]


def drain(terminal: int) -> None:
    with suppress(OSError):
        while os.read(terminal, 65536):
            pass


def cpu_seconds(pid: int) -> float:
    """Return the seconds that all threads of a process ran (schedstat, proc(5), counts nanoseconds)."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9
