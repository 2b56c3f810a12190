"""A process with threads does not fork: it is refused, or a program of ours starts again without them."""

import subprocess
import sys

import pytest
from fakes.local_jobs import LocalJobs

WITH_A_THREAD = """
import os, threading
from scriptmode_runtime._processes import forks

threading.Thread(target=threading.Event().wait, name="feeder", daemon=True).start()
try:
    {fork}
except forks.ForkError as error:
    print(str(error).replace(str(os.getpid()), "PID"))
"""


@pytest.mark.parametrize("fork", ["forks.fork()", "forks.popen(['true'], lambda: None)"])
def test_a_fork_beside_a_thread_is_refused_with_the_names_of_all_threads(fork):
    program = WITH_A_THREAD.format(fork=fork)
    done = subprocess.run((sys.executable, "-c", program), check=True, capture_output=True, text=True, timeout=600)
    assert done.stdout == (
        "process PID has 2 threads (MainThread, feeder) and must not fork; start the work in an interpreter of its own\n"
    )


@pytest.mark.slow
def test_a_job_completes_where_each_interpreter_starts_a_thread(tmp_path, monkeypatch):
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    starts = "import threading\nthreading.Thread(target=threading.Event().wait, name='tracer', daemon=True).start()\n"
    (hooks / "sitecustomize.py").write_text(starts)
    monkeypatch.setenv("PYTHONPATH", str(hooks), prepend=":")
    jobs = LocalJobs(tmp_path)
    name = jobs.start("import threading; print(len(threading.enumerate()), 'threads')", hosts=2)
    jobs.completed(name)
    found = sorted(line for line in jobs.lines(name) if "threads" in line)
    assert found == ["algo-1: 2 threads", "algo-2: 2 threads"]
