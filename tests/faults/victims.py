"""Random victims: a job, a moment of its life, one of its processes, and a signal, all of them from one seed."""

import hashlib
import os
import random
import re
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from fakes.local_jobs import ENDED, LocalJobs, channel
from faults import processes
from processes.launchers import until

from scriptmode.data import mounts
from scriptmode_runtime.processes import process_tree

PROGRAM = (Path(__file__).parent / "programs" / "victim.py").read_text()
#: Seconds from the signal to the job's end, on a machine that others use too; and to the end of the last process.
BOUND, TIDY = 90.0, 20.0
HOST_TIMEOUT = 4
PHASES = ("Starting", "Downloading", "Training", "Stopping", "Uploading", "ended")
_SWITCH = "sagemaker_{}_enabled"
LAYOUTS = {
    "single": (1, {}),
    "mirrored": (3, {_SWITCH.format("multi_worker_mirrored_strategy"): True}),
    "mpi": (2, {_SWITCH.format("mpi"): True, "sagemaker_mpi_num_of_processes_per_host": 2}),
    "ps": (2, {_SWITCH.format("parameter_server"): True}),
}
#: Parameter servers import TensorFlow: they come now and then.
_WEIGHTS = {"single": 4, "mirrored": 4, "mpi": 4, "ps": 1}
_CHANNELS = ("files", "pipe", "fast")
#: What a process is, by the words it was started with.
_ROLES = (
    ("rank", r"\S+ -m scriptmode_runtime\.rank\b"),
    ("server", r"\S+ -m scriptmode_runtime\.tensorflow\.server"),
    ("launcher", r"\S+ -m scriptmode_runtime$"),
    ("mpirun", r"\S*(mpirun|prterun|orterun)\b"),
    ("daemon", r"\S*\b(prted|orted)\b"),
    ("script", r"\S+ (-u )?(\S*/)?train\.py"),
    ("task", r"\S+ -m scriptmode\.platforms\.local\.agent"),
)
_LOST = r"its launcher was lost|did not come up|could not be reached"
_KILLED = r"(script|worker|master|chief|ps|rank|mpirun|daemon)[^\n]*: (killed by SIGKILL|exit code \d+|ended while)"
#: What a reason may say of a process that was killed, by its role.
TRUE = {
    "agent": r"the job's agent( \(process \d+\))? (was killed or crashed|was killed|ended|did not)",
    "host agent": r"the agent of algo-1(, algo-\d)* \(process \d+\) was killed by SIGKILL",
    "task": r"SIGKILL|cannot be served|was killed|ended early|Broken pipe|mount|Transport endpoint",
    "launcher": rf"launcher was killed by SIGKILL|{_LOST}",
    "rank": _KILLED,
    "server": _KILLED,
    "mpirun": _KILLED,
    "daemon": _KILLED,
    "script": _KILLED,
    "program": r"SIGKILL|exit code \d+",
}
_HINT = "If it was not killed on purpose, memory ran out"


class Plan(NamedTuple):
    """What happens to one job; the same seed gives the same plan."""

    seed: str
    layout: str
    channels: tuple[str, ...]
    phase: str
    #: Seconds from the beginning of the phase to the signal.
    delay: float
    #: Which of the processes there are then, as a part of their number; roles first, so that many ranks are one role.
    role: float
    number: float
    #: Seconds for which the process is stopped; 0 is a kill.
    paused: float
    seconds: float


def plan_of(seed):
    chance = random.Random(seed)
    layout = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    phase = chance.choice(PHASES)
    channels = tuple(name for name in _CHANNELS if chance.random() < 0.5 or (name, phase) == ("files", "Downloading"))
    return Plan(
        seed, layout, channels, phase,
        delay=chance.choice((0.0, chance.uniform(0, 0.05), chance.uniform(0, 0.6))),
        role=chance.random(), number=chance.random(),
        paused=chance.choice((0.0, 0.0, 0.0, chance.uniform(0.1, 2.0))), seconds=chance.uniform(0.5, 2.0),
    )  # fmt: skip


class Run:
    #: What a process gets that is not stopped for a while.
    kill = signal.SIGKILL

    def __init__(self, plan, folder, data):
        self.plan = plan
        self.jobs = LocalJobs(folder, stop_grace=5.0)
        # Names of sockets are short.
        self.tmpdir = Path(f"/tmp/v{os.urandom(4).hex()}")
        self.tmpdir.mkdir()
        self.victim = ("none", 0)
        self._data = data
        self._known = {}

    def play(self):
        """Let it happen, and wait for the end; return the job's description."""
        self.name = self._start()
        self._await_phase()
        self._strike()
        description = until(lambda: self.jobs.ended(self.name), BOUND, lambda: "the job has no end")
        self._check(description)
        return description

    def close(self):
        for identity in self._known.values():
            if identity and process_tree.is_running(identity):
                with suppress(ProcessLookupError):
                    os.kill(identity.pid, signal.SIGKILL)
        self.jobs.close()
        shutil.rmtree(self.tmpdir, ignore_errors=True)

    def _start(self):
        plan = self.plan
        hosts, parameters = LAYOUTS[plan.layout]
        modes = {"files": {}, "pipe": {"InputMode": "Pipe"}, "fast": {"InputMode": "FastFile"}}
        channels = [channel(name, f"file://{self._data / name}", **modes[name]) for name in plan.channels]
        timeout = {"SCRIPTMODE_HOST_TIMEOUT_SECONDS": str(HOST_TIMEOUT)}
        more = {
            "CheckpointConfig": {"S3Uri": f"file://{self.jobs.folder}/checkpoints"},
            "Environment": {"TMPDIR": str(self.tmpdir), "TF_CPP_MIN_LOG_LEVEL": "2", **timeout},
        }
        parameters = {**parameters, "seconds": plan.seconds}
        return self.jobs.start(PROGRAM, hosts=hosts, hyperparameters=parameters, channels=channels, more=more)

    def _await_phase(self):
        wanted = "Training" if self.plan.phase == "Stopping" else self.plan.phase
        began = time.monotonic()

        def there():
            described = self.jobs.platform.describe(self.name).response
            passed = [each["Status"] for each in described["SecondaryStatusTransitions"]]
            return wanted in passed or described["TrainingJobStatus"] in ENDED

        until(there, BOUND, lambda: f"no {wanted}")
        if self.plan.phase == "Stopping":
            self.jobs.platform.stop(self.name)
        began = time.monotonic()
        until(lambda: time.monotonic() >= began + self.plan.delay)

    def _strike(self):
        """Kill or stop one of the processes that there are now."""
        by_role = {}
        with suppress(Exception):
            agent = self.jobs.agent(self.name)
            if process_tree.is_running(agent):
                by_role = {"agent": [agent.pid]}
                recorded = self.jobs.job_folder(self.name).read_processes().get("agent of algo-1")
                for pid in process_tree.descendants(agent.pid):
                    role = "host agent" if recorded and pid == recorded.pid else role_of(pid)
                    by_role.setdefault(role, []).append(pid)
        self._known = {pid: process_tree.identify(pid) for pids in by_role.values() for pid in pids}
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

    def _check(self, description):
        status, reason = description["TrainingJobStatus"], description.get("FailureReason", "")
        if self.before["TrainingJobStatus"] in ENDED:
            assert status == self.before["TrainingJobStatus"], "an end changed"
        if status == "Completed":
            self._check_model(description)
        elif status == "Stopped":
            assert self.plan.phase == "Stopping"
        else:
            self._check_reason(reason)
        until(lambda: not self._left(), TIDY, lambda: f"left: {self._left()}")
        assert self.jobs.platform.describe(self.name).response == description, "an end changed"
        (summary,) = self.jobs.platform.list()
        assert (summary["TrainingJobName"], summary["TrainingJobStatus"]) == (self.name, status)

    def _check_model(self, description):
        weights = self.jobs.model(description)["weights"]
        assert hashlib.sha256(weights[32:]).digest() == weights[:32], "Completed with half a model"

    def _check_reason(self, reason):
        role, _ = self.victim
        assert not self.plan.paused or role in ("agent", "launcher"), "stopped for a moment, and failed"
        assert 0 < len(reason) <= 1024
        assert re.search(TRUE[role] if not self.plan.paused else rf"{TRUE[role]}|silent", reason), "not true"
        assert "emory ran out" not in reason.replace(_HINT, ""), "asserted, though not known"

    def _left(self):
        """Return what of the job is not gone: processes, mounts, inputs, FIFOs, and files outside its folder."""
        folder = self.jobs.data_dir / "jobs"
        known = [identity.pid for identity in self._known.values() if identity and process_tree.is_running(identity)]
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


def make_data(folder):
    """Write what the channels hold: thousands of small files take a while to copy."""
    for name, count, size in (("files", 1500, 100), ("pipe", 20, 100_000), ("fast", 20, 100_000)):
        (folder / name).mkdir()
        for number in range(count):
            (folder / name / f"part-{number}").write_bytes(bytes(size))
    return folder
