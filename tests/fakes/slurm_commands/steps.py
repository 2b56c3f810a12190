"""The processes of the fake Slurm's jobs: batch scripts really run, on this machine.

A supervisor (``python -m fakes.slurm_commands slurmstepd``) starts each batch script, writes how it ended, and ends what
is left of the job. A process belongs to a job if its environment says so, whatever sessions it makes.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

#: In the environment of every process of a job: the cluster's folder, the job and its run.
MARK = "FAKE_SLURM_JOB"
KILL_WAIT_SECONDS = 5.0
_PACKAGE = Path(__file__).parent
_POLL_SECONDS = 0.02


def folder(cluster, number):
    """Return a job's folder."""
    return Path(cluster) / "jobs" / str(number)


def program(*words):
    """Return the argv of a program of this package; without site-packages, which cost more time than all else."""
    return [sys.executable, "-SE", str(_PACKAGE / "__main__.py"), *words]


def start_batch(cluster, job):
    """Start the batch script of a job's current run."""
    (folder(cluster, job["id"]) / "job.json").write_text(json.dumps(job))
    subprocess.run(
        ("setsid", "--fork", *program("slurmstepd", str(cluster), str(job["id"]))), check=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"]},
    )  # fmt: skip


def batch_end(cluster, job):
    """Return the exit code and the signal of the batch script of the current run; None while it runs."""
    try:
        return json.loads((folder(cluster, job["id"]) / f"{job['run']}.ended").read_text())
    except FileNotFoundError:
        return None


def end_job(cluster, job, which=signal.SIGTERM):
    """Send SIGTERM to all processes of a job's run; the supervisor sends SIGKILL to those that stay."""
    (folder(cluster, job["id"]) / f"{job['run']}.ending").touch()
    signal_job(cluster, job, which)


def signal_job(cluster, job, which):
    """Send a signal to all processes of a job's run."""
    for pid in members(cluster, job):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, which)


def members(cluster, job):
    """Return the processes of a job's run."""
    marked = f"{MARK}={mark(cluster, job)}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if marked in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return [pid for pid in found if pid != os.getpid()]


def mark(cluster, job):
    """Return what marks the processes of a job's run."""
    return f"{cluster}:{job['id']}.{job['run']}"


def variables(cluster, job):
    """Return variables that Slurm sets for a batch script."""
    found = {
        "SLURM_JOB_ID": str(job["id"]), "SLURM_JOB_NODELIST": node_list(job["nodes"]),
        "SLURMD_NODENAME": job["nodes"][0], MARK: mark(cluster, job),
    }  # fmt: skip
    if job["restarts"]:
        found["SLURM_RESTART_COUNT"] = str(job["restarts"])
    return found


def node_list(nodes):
    """Return ``node1`` or ``node[1-2]``."""
    if len(nodes) < 2:
        return "".join(nodes)
    return f"node[{nodes[0][4:]}-{nodes[-1][4:]}]"


def supervise(cluster, number):
    """Run a job's batch script; write how it ended; end all its processes."""
    place = folder(cluster, number)
    job = json.loads((place / "job.json").read_text())
    environment = {**json.loads((place / "environment.json").read_text()), **variables(cluster, job)}
    script = place / "script"
    script.chmod(0o700)
    mode = "ab" if job["options"].get("open-mode") == "append" else "wb"
    with output_path(job).open(mode) as output:
        batch = subprocess.Popen(
            [script], cwd=job["directory"], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
    ending = place / f"{job['run']}.ending"
    deadline = None
    while batch.poll() is None:
        if deadline is None and ending.exists():
            deadline = time.monotonic() + KILL_WAIT_SECONDS
        if deadline is not None and time.monotonic() > deadline:
            signal_job(cluster, job, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    end_all(cluster, job)
    code = batch.returncode
    written = place / f"{job['run']}.new"
    written.write_text(json.dumps([max(code, 0), max(-code, 0)]))
    written.rename(place / f"{job['run']}.ended")


def end_all(cluster, job):
    """End the processes of a job that outlived it."""
    while left := members(cluster, job):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def output_path(job):
    """Return the file that ``--output`` names."""
    return Path(job["directory"]) / job["options"].get("output", f"slurm-{job['id']}.out").replace("%%", "%")
