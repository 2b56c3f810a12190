"""The processes of a job, one of which gets a signal, and what may be left of the job then."""

import os
import re
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

from fakes.local_jobs import ENDED, LocalJobs
from faults import processes
from processes.launchers import until

from scriptmode_local._data import mounts
from scriptmode_runtime._processes import proc, process_tree

#: Seconds from the signal to the job's end, on a machine that others use too; and to the end of the last process.
BOUND, TIDY = 90.0, 20.0
#: What a process is, by the words it was started with.
_ROLES = (
    ("rank", r"\S+ -m scriptmode_runtime\.rank\b"),
    ("server", r"\S+ -m scriptmode_runtime\.tensorflow\.server"),
    ("launcher", r"\S+ -m scriptmode_runtime$"),
    ("mpirun", r"\S*(mpirun|prterun|orterun)\b"),
    ("daemon", r"\S*\b(prted|orted)\b"),
    ("script", r"\S+ (-u )?(\S*/)?train\.py"),
    ("task", r"\S+ -m scriptmode_local\."),
)
_LOST = r"its launcher was lost|did not come up|could not be reached"
_KILLED = r"(script|worker|master|chief|ps|rank|mpirun|daemon)[^\n]*: (killed by SIGKILL|exit code \d+|ended while)"
#: What a reason may say of a process that was killed, by its role.
TRUE = {
    "agent": r"the job's agent( \(process \d+\))? (was killed or crashed|was killed|ended|did not)",
    "host agent": r"the agent of algo-1(, algo-\d)* \(process \d+\) was killed by SIGKILL",
    "task": r"SIGKILL|cannot be served|was killed|ended early|Broken pipe|mount|Transport endpoint",
    "launcher": rf"launcher was killed by SIGKILL|{_LOST}", "rank": _KILLED, "server": _KILLED, "mpirun": _KILLED,
    "daemon": _KILLED, "script": _KILLED, "program": r"SIGKILL|exit code \d+",
}  # fmt: skip


class Run:
    """One job of a plan: its ``role`` and ``number`` choose a process, ``paused`` is how long that is stopped; 0 is a kill."""

    #: What a process gets that is not stopped for a while.
    kill = signal.SIGKILL

    def __init__(self, plan, folder):
        self.plan = plan
        self.jobs = LocalJobs(folder, stop_grace=5.0)
        # Names of sockets are short.
        self.tmpdir = Path(f"/tmp/v{os.urandom(4).hex()}")
        self.tmpdir.mkdir()
        self.victim = ("none", 0)
        self._known = {}

    def close(self):
        for identity in self._known.values():
            if identity and proc.is_running(identity):
                with suppress(ProcessLookupError):
                    os.kill(identity.pid, signal.SIGKILL)
        self.jobs.close()
        shutil.rmtree(self.tmpdir, ignore_errors=True)

    def _strike(self):
        """Kill or stop one of the processes that there are now."""
        by_role = {}
        with suppress(Exception):
            agent = self.jobs.agent(self.name)
            if proc.is_running(agent):
                by_role = {"agent": [agent.pid]}
                recorded = self.jobs.job_folder(self.name).read_processes().get("agent of algo-1")
                for pid in process_tree.descendants(agent.pid):
                    role = "host agent" if recorded and pid == recorded.pid else role_of(pid)
                    by_role.setdefault(role, []).append(pid)
        self._known = {pid: proc.identify(pid) for pids in by_role.values() for pid in pids}
        self.before = self.jobs.platform.describe(self.name).response
        if not by_role:
            return
        role = sorted(by_role)[int(self.plan.role * len(by_role))]
        pid = sorted(by_role[role])[int(self.plan.number * len(by_role[role]))]
        self.victim = (role, pid)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP if self.plan.paused else self.kill)
        if self.plan.paused:
            began = time.monotonic()
            until(lambda: time.monotonic() >= began + self.plan.paused)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _left(self):
        """Return what of the job is not gone: processes, mounts, inputs, FIFOs, and files outside its folder."""
        folder = self.jobs.data_dir / "jobs"
        known = [identity.pid for identity in self._known.values() if identity and proc.is_running(identity)]
        # Once a job has ended nothing is reconciled any more: what an agent did not come to remove goes with the job.
        unfinished = self.victim[0] == "agent" and self.before["TrainingJobStatus"] in ENDED
        inputs = [] if unfinished else [path for path in _files(folder) if "/input/data/" in path]
        return [
            *(f"process {pid}: {processes.words(pid)}" for pid in {*known, *self.jobs.processes()}),
            *(f"mount {os.fsdecode(place)}" for place in mounts.mounted_below(folder)),
            *inputs[:9],
            *_files(self.tmpdir),
        ]


def _files(folder):
    """Return every file below a folder from which files may be removed meanwhile."""
    return [f"{place}/{name}" for place, _, names in os.walk(folder) for name in names]


def role_of(pid):
    """Return what a process of a job is."""
    words = " ".join(processes.words(pid))
    return next((role for role, pattern in _ROLES if re.match(pattern, words)), "program")
