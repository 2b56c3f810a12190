"""The processes of the fake Slurm's jobs: batch scripts and steps really run, on this machine.

A supervisor (``python -m fakes.slurm_commands slurmstepd``) starts each batch script, writes how it ended, and ends what
is left of the job. A process belongs to a job's step if its environment says so, whatever sessions it makes.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

#: In the environment of every process of a job: the cluster's folder, the job, its run and the step (batch, 0, 1 ...).
MARK = "FAKE_SLURM_STEP"
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
        ("setsid", "--fork", *program("slurmstepd", str(cluster), str(job["id"]))),
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"]},
    )


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


def signal_job(cluster, job, which, *, batch=True):
    """Send a signal to the processes of a job's steps, and of its batch script."""
    for pid in members(cluster, job, batch=batch):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, which)


def members(cluster, job, step=None, *, batch=True):
    """Return the processes of a job's run, or of one of its steps."""
    prefix = f"{MARK}={mark(cluster, job, '')}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            variables_of = (process / "environ").read_bytes().split(b"\0")
            names = [each[len(prefix) :].decode() for each in variables_of if each.startswith(prefix)]
            if names and (step is None or names[-1] == str(step)) and (batch or names[-1] != "batch"):
                found.append(int(process.name))
    return [pid for pid in found if pid != os.getpid()]


def mark(cluster, job, step):
    """Return what marks the processes of a step."""
    return f"{cluster}:{job['id']}.{job['run']}:{step}"


def variables(cluster, job, node, rank=0):
    """Return the variables that Slurm sets for a process of a job."""
    nodes = node_list(job["nodes"])
    found = {
        "SLURM_JOB_ID": job["id"],
        "SLURM_JOBID": job["id"],
        "SLURM_JOB_NAME": job["name"],
        "SLURM_JOB_NODELIST": nodes,
        "SLURM_NODELIST": nodes,
        "SLURM_JOB_NUM_NODES": job["count"],
        "SLURM_NNODES": job["count"],
        "SLURM_JOB_PARTITION": job["partition"],
        "SLURM_JOB_ACCOUNT": job["account"],
        "SLURM_JOB_USER": job["user"],
        "SLURM_JOB_UID": job["uid"],
        "SLURM_CLUSTER_NAME": "scriptmode-slurm",
        "SLURM_CPUS_ON_NODE": 1,
        "SLURM_TASKS_PER_NODE": f"1(x{job['count']})" if job["count"] > 1 else 1,
        "SLURM_SUBMIT_DIR": job["directory"],
        "SLURMD_NODENAME": node,
        "SLURM_NODEID": rank,
        "SLURM_PROCID": rank,
        "SLURM_LOCALID": 0,
        MARK: mark(cluster, job, "batch"),
    }
    if job["restarts"]:
        found["SLURM_RESTART_COUNT"] = job["restarts"]
    if job["others"]:
        found["SLURM_HET_SIZE"] = 1 + len(job["others"])
        for offset, component in enumerate((job, *job["others"])):
            found[f"SLURM_JOB_ID_HET_GROUP_{offset}"] = job["id"] + offset
            found[f"SLURM_JOB_NODELIST_HET_GROUP_{offset}"] = node_list(component["nodes"])
            found[f"SLURM_JOB_NUM_NODES_HET_GROUP_{offset}"] = component["count"]
            found[f"SLURM_JOB_PARTITION_HET_GROUP_{offset}"] = component["partition"]
    if job["gpus"]:
        found["CUDA_VISIBLE_DEVICES"] = found["SLURM_JOB_GPUS"] = ",".join(map(str, range(job["gpus"])))
    return {name: str(value) for name, value in found.items()}


def node_list(nodes):
    """Return ``node1`` or ``node[1-2]``."""
    if len(nodes) < 2:
        return "".join(nodes)
    return f"node[{nodes[0][4:]}-{nodes[-1][4:]}]"


def supervise(cluster, number):
    """Run a job's batch script; write how it ended; end all its processes."""
    place = folder(cluster, number)
    job = json.loads((place / "job.json").read_text())
    environment = {**json.loads((place / "environment.json").read_text()), **variables(cluster, job, job["nodes"][0])}
    script = place / "script"
    script.chmod(0o700)
    mode = "ab" if job["options"].get("open-mode") == "append" else "wb"
    with output_path(job, "output").open(mode) as output, output_path(job, "error").open("ab") as errors:
        batch = subprocess.Popen(
            [script], cwd=job["directory"], env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=errors,
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


def end_all(cluster, job, step=None):
    """End the processes of a job, or of one of its steps, that outlived it."""
    while left := members(cluster, job, step):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def output_path(job, option):
    """Return the file that ``--output`` or ``--error`` names."""
    pattern = job["options"].get(option) or job["options"].get("output", "slurm-%j.out")
    path = pattern.replace("%j", str(job["id"])).replace("%x", job["name"]).replace("%N", (job["nodes"] or [""])[0])
    return Path(job["directory"]) / path
