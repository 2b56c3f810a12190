"""Slurm without a cluster: its commands on a PATH, jobs that play histories, and batch scripts that really run.

    fake = FakeSlurm(folder)
    fake.play({"state": "PENDING", "reason": "Resources", "seconds": 2}, {"state": "RUNNING"})
    subprocess.run(["sbatch", "job.sh"], env=fake.environment)

``slurm_commands.jobs`` says what a history may hold. Jobs go on when a command asks, or a method of the fake is called:
there is no daemon. Product code runs against it without a change; what the commands print is recorded from a real
cluster, which ``tests/slurm`` starts.
"""

import os
import shlex
import time
from pathlib import Path

from fakes.processes import until
from fakes.slurm_commands import jobs, steps

COMMANDS = ("sbatch", "squeue", "sacct", "sinfo", "scontrol", "scancel")


class FakeSlurm:
    """One fake cluster of the nodes node1 and node2, which are this machine."""

    def __init__(self, folder):
        self.folder = Path(folder).resolve()
        self.programs = self.folder / "bin"
        self.programs.mkdir(parents=True)
        for name in COMMANDS:
            file = self.programs / name
            file.write_text(f'#!/bin/sh\nexec {shlex.join(steps.program(name, str(self.folder)))} "$@"\n')
            file.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}"}

    def use(self, monkeypatch):
        """Have this process's commands reach it."""
        monkeypatch.setenv("PATH", self.environment["PATH"])
        for name in list(os.environ):
            if name.startswith(("SLURM_", "SBATCH_", "SQUEUE_", "SACCT_")):
                monkeypatch.delenv(name)

    def play(self, *history):
        """Let the next job that is submitted have this history; several calls are for several jobs."""
        with jobs.opened(self.folder) as state:
            state["histories"].append(list(history))

    def continue_with(self, number, *history):
        """Let a job enter the first of these steps now, and then the others."""
        with jobs.opened(self.folder) as state:
            job = state["jobs"][str(number)]
            job["history"] = list(history)
            jobs.enter_next(state, job)

    def set_reachable(self, reachable):
        """Let slurmctld answer, or not; jobs run on."""
        with jobs.opened(self.folder) as state:
            state["is_down"] = not reachable

    def purge(self, number):
        """Let slurmctld forget an ended job, as it does after MinJobAge; accounting keeps it."""
        with jobs.opened(self.folder) as state:
            state["jobs"][str(number)]["is_purged"] = True

    def job(self, number):
        """Return what is known of a job, without asking."""
        with jobs.opened(self.folder) as state:
            return dict(state["jobs"][str(number)])

    def jobs(self):
        """Return the numbers of all jobs."""
        with jobs.opened(self.folder) as state:
            return [int(number) for number in state["jobs"]]

    def reaches(self, number, *names, seconds=600):
        """Wait until a job is in one of the states; return it."""
        until(lambda: self.job(number)["state"] in names, seconds)
        return self.job(number)

    def asks(self, since):
        """Return the commands that were run since a time, as ``(name, time, arguments)``."""
        with jobs.opened(self.folder) as state:
            return [tuple(each) for each in state["asks"] if each[1] >= since]

    def close(self):
        """End every process of every job."""
        for number in self.jobs():
            with jobs.opened(self.folder) as state:
                jobs.cancel(state, state["jobs"][str(number)], os.getuid())
            steps.end_all(str(self.folder), self.job(number))
        ending = time.monotonic() + steps.KILL_WAIT_SECONDS
        until(lambda: all(self._is_over(number) for number in self.jobs()) or time.monotonic() > ending)

    def _is_over(self, number):
        job = self.job(number)
        return not job["run"] or steps.batch_end(self.folder, job) is not None
