"""The jobs of the fake Slurm: their states, and the histories by which these change. No commands, no texts.

A job is a dict in ``state.json``, which every command reads, advances and writes under a lock. A *history* is a list of
steps; each has a ``state`` and, if it ends by itself, ``seconds``. A job without a history starts at once. Whatever its history is, a job that runs ends with its script.

    PENDING     with ``reason`` and ``start`` (expected, in seconds from now); after a run: the job was requeued, because
                of what ``was`` says (REQUEUED, PREEMPTED, NODE_FAIL)
    RUNNING     starts the batch script, unless it runs
    PREEMPTING  runs on, with PreemptTime; its steps, which the fake does not have, get SIGTERM
    any other   the job has ended, with ``exit_code``, ``signal`` and ``by`` (the user who cancelled it); no process
                of it is left

What a real cluster does (22.05.8; ``tests/slurm`` makes one), and this one too unless it says otherwise:

* A requeued job is PENDING with BeginTime for 120 s (``cred_expire``), here for `REQUEUE_SECONDS`; it starts in no case
  before the nodes have ended its last run.
* scancel, requeue, a time limit and the end of a grace send SIGTERM to the batch script and to all steps, and SIGKILL
  KillWait later. The beginning of a grace sends SIGTERM to the steps alone.
* A preempted job whose script ends in its grace is FAILED, not requeued. PreemptTime stays if the other job is cancelled.
* sacct is late by a second (not here), keeps the last reason of a wait, and drops bit 7 of an exit code: 137 is ``9:0``.
* sbatch accepts what never starts: a time limit, or a number of nodes or CPUs, above the partition's.
* slurmctld forgets jobs of the last 5 s when it is killed by SIGKILL; time limits and graces end every 30 s.
* Where memory is limited without cgroups, a job that exceeds it is FAILED, not OUT_OF_MEMORY.
"""

import contextlib
import fcntl
import json
import os
import signal
import time
from pathlib import Path

from fakes.slurm_commands import steps

PENDING, RUNNING, PREEMPTING = "PENDING", "RUNNING", "PREEMPTING"
#: Seconds that a job waits after ``scontrol requeue`` where the test says nothing else.
REQUEUE_SECONDS = 1.0
NODES = ("node1", "node2")
_NEW = {"next": 1, "asks": [], "is_down": False, "histories": [], "jobs": {}}


@contextlib.contextmanager
def opened(folder):
    """Read the state, bring it up to date, and write it after the caller's changes; under a lock."""
    path = Path(folder) / "state.json"
    with (Path(folder) / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        state = json.loads(path.read_text()) if path.exists() else json.loads(json.dumps(_NEW))
        state["folder"] = str(folder)
        advance(state)
        yield state
        advance(state)
        written = path.with_suffix(".new")
        written.write_text(json.dumps(state, indent=1))
        written.replace(path)


def submit(state, options, script, environment, directory):
    """Add a job; return it. It has the next history that the test prepared."""
    number = state["next"]
    state["next"] += 1
    job = {
        "id": number, "name": options.get("job-name", "wrap"), "user": environment.get("USER", "root"),
        "uid": os.getuid(), "account": options.get("account", "research"),
        "partition": options.get("partition", "batch"), "count": int(options.get("nodes", "1")), "options": options,
        "directory": directory, "requeue": "no-requeue" not in options, "submitted": time.time(), "restarts": 0,
        "run": 0, "preempted": None,
        "history": state["histories"].pop(0) if state["histories"] else [{"state": RUNNING}],
    }  # fmt: skip
    state["jobs"][str(number)] = job
    folder = steps.folder(state["folder"], number)
    folder.mkdir(parents=True)
    (folder / "script").write_text(script)
    (folder / "environment.json").write_text(json.dumps(environment))
    job.update(state=PENDING, reason="None", nodes=[], start=None, end=None, exit_code=0, signal=0, by=None)
    enter_next(state, job)
    advance(state)
    return job


def find(state, number):
    """Return a job that slurmctld still knows, or None."""
    job = state["jobs"].get(str(number))
    return None if job is None or job.get("is_purged") else job


def is_active(job):
    """Return whether the job waits or runs."""
    return job["state"] in (PENDING, RUNNING)


def advance(state):
    """Bring every job to the state in which it is now."""
    for job in state["jobs"].values():
        if job["state"] == RUNNING:
            _end_with_script(state, job)
        while is_active(job) and _is_over(state, job) and job["history"]:
            enter_next(state, job)


def cancel(state, job, uid):
    """Cancel a job as ``scancel`` does."""
    if is_active(job):
        job["history"] = []
        _end(state, job, {"state": "CANCELLED", "by": uid, "signal": 15 if job["state"] == RUNNING else 0})


def requeue(state, job):
    """Return a job to the queue as ``scontrol requeue`` does; it goes on with its history if that says how."""
    if not (job["history"] and job["history"][0]["state"] == PENDING):
        job["history"] = [{"state": PENDING, "reason": "BeginTime", "seconds": REQUEUE_SECONDS}, {"state": RUNNING}]
    enter_next(state, job)


def _is_over(state, job):
    step = job["step"]
    if job["state"] == PENDING and job["run"] and steps.batch_end(state["folder"], job) is None:
        return False  # the nodes still end its last run
    return "seconds" in step and time.time() - job["since"] >= step["seconds"]


def enter_next(state, job):
    """Enter the next step of a job's history, or end the one that lasts until then."""
    if not job["history"]:
        return
    step = job["history"].pop(0)
    job.update(step=step, since=time.time())
    if step["state"] == PENDING:
        _wait(state, job, step)
    elif step["state"] == RUNNING:
        _start(state, job)
    elif step["state"] == PREEMPTING:
        job["preempted"] = time.time()
    else:
        job["history"] = []
        _end(state, job, step)


def _wait(state, job, step):
    if job["run"] and job["state"] != PENDING:
        if job["state"] == RUNNING:
            _end(state, job, {"state": step.get("was", "REQUEUED")})
        job["restarts"] += 1
    job.update(state=PENDING, reason=step.get("reason", "None"), nodes=[], start=None, end=None, by=None)
    job.update(exit_code=0, signal=0, preempted=None)
    expected = step.get("start", step.get("seconds") if job["reason"] == "BeginTime" else None)
    job["expected"] = None if expected is None else time.time() + expected


def _start(state, job):
    if job["state"] == RUNNING:
        return
    job["run"] += 1
    job.update(state=RUNNING, reason="None", start=time.time(), nodes=list(NODES[: job["count"]]))
    steps.start_batch(state["folder"], job)


def _end_with_script(state, job):
    ended = steps.batch_end(state["folder"], job)
    if ended is None:
        return
    code, signal = ended
    name = "FAILED" if code or signal else "COMPLETED"
    job["history"] = []
    _end(state, job, {"state": name, "exit_code": code, "signal": signal})


def _end(state, job, step):
    if job["state"] == RUNNING:
        lost = step["state"] == "NODE_FAIL"
        steps.end_job(state["folder"], job, signal.SIGKILL if lost else signal.SIGTERM)
    job["start"] = job["start"] or time.time()
    reasons = {"FAILED": "NonZeroExitCode", "NODE_FAIL": "NodeDown", "TIMEOUT": "TimeLimit"}
    job.update(
        state=step["state"],
        end=time.time(),
        exit_code=step.get("exit_code", 0),
        signal=step.get("signal", signal.SIGTERM if step["state"] == "TIMEOUT" else 0),
        by=step.get("by"),
        reason=step.get("reason", reasons.get(step["state"], job["reason"])),
    )
