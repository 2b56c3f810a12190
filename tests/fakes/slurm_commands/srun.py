"""``srun`` of the fake Slurm: the tasks of a step as processes of this machine."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from fakes.slurm_commands import jobs, steps
from fakes.slurm_commands.options import UsageError, parse

_LONG = (
    "nodes= ntasks= ntasks-per-node= cpus-per-task= nodelist= job-name= input= output= error= chdir= partition= "
    "account= gres= mem= time= export= mpi= signal= jobid= wait= kill-on-bad-exit container-image= container-mounts= "
    "het-group= overlap exact exclusive unbuffered quiet label no-kill help"
)
_SHORT = "N:n:w:J:i:o:e:D:p:A:c:t:W:Kul"
_NAMES = {
    "N": "nodes", "n": "ntasks", "w": "nodelist", "J": "job-name", "i": "input", "o": "output", "e": "error",
    "D": "chdir", "p": "partition", "A": "account", "c": "cpus-per-task", "t": "time", "W": "wait", "u": "unbuffered",
    "K": "kill-on-bad-exit", "l": "label",
}  # fmt: skip


def main(folder, arguments):
    """Run a step in the job of this process, or in one of its own; return the exit code."""
    try:
        options, command = parse(arguments, _SHORT, _LONG, _NAMES)
    except UsageError as error:
        print(f"srun: {error}", file=sys.stderr)
        return 255
    number = options.get("jobid") or os.environ.get("SLURM_JOB_ID")
    own = number is None
    with jobs.opened(folder) as state:
        if state["is_down"]:
            print(
                "srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)",
                file=sys.stderr,
            )
            return 1
        state["asks"].append(["srun", time.time()])
        if own:
            script = "#!/bin/sh\nexec sleep infinity\n"
            number = jobs.submit(state, {**options, "output": "/dev/null"}, script, {"PATH": os.defpath}, "/")["id"]
        job = jobs.find(state, number)
        if job is None or job["state"] != jobs.RUNNING:
            print(
                f"srun: error: Unable to confirm allocation for job {number}: Invalid job id specified", file=sys.stderr
            )
            print(f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {number}", file=sys.stderr)
            return 1
        step = job.setdefault("steps", {}).setdefault(str(job["run"]), 0)
        job["steps"][str(job["run"])] += 1
        job = jobs.components(job)[int(options.get("het-group", "0"))]
    try:
        return _run(folder, job, step, options, command)
    finally:
        if own:
            with jobs.opened(folder) as state:
                jobs.cancel(state, state["jobs"][str(number)], os.getuid())


def _run(folder, job, step, options, command):
    """Run the tasks of a step; SIGTERM ends them at once by SIGKILL, as srun does."""
    nodes = [node for node in options.get("nodelist", "").split(",") if node] or job["nodes"]
    nodes = nodes[: int(options.get("nodes", len(nodes)))]
    tasks, signals = [], []

    def kill(*received):
        signals.append(received)
        for task in tasks:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(task.pid, signal.SIGKILL)

    signal.signal(signal.SIGTERM, kill)
    for rank, node in enumerate(nodes):
        environment = {**os.environ, **steps.variables(folder, job, node, rank)}
        environment.update(
            SLURM_STEP_ID=str(step), SLURM_STEPID=str(step), SLURM_JOB_NAME=options.get("job-name", job["name"])
        )
        environment.update(SLURM_STEP_NODELIST=node, SLURM_NTASKS=str(len(nodes)), SRUN_DEBUG="3")
        environment[steps.MARK] = steps.mark(folder, job, str(step))
        tasks.append(_start(command, options, environment))
    if signals:
        kill()  # a task may run before it is known here
    codes = [task.wait() for task in tasks]
    steps.end_all(folder, job, step)
    for rank, (node, code) in enumerate(zip(nodes, codes)):
        if code:
            said = f"{signal.strsignal(-code)}" if code < 0 else f"Exited with exit code {code}"
            print(f"srun: error: {node}: task {rank}: {said}", file=sys.stderr)
    return max(code if code >= 0 else 128 - code for code in codes)


def _start(command, options, environment):
    if "output" in options:
        with Path(options["output"]).open("ab") as output:
            return _popen(command, options, environment, output)
    return _popen(command, options, environment, None)


def _popen(command, options, environment, output):
    return subprocess.Popen(
        command, env=environment, cwd=options.get("chdir"), stdout=output, stderr=output, start_new_session=True
    )
