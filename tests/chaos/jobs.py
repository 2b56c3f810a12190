"""One job of a plan: start it, let its fault happen, and hold its end against what is true."""

import hashlib
import json
import os
import random
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from chaos.plans import LAYOUTS, S3_FAULTS
from fakes.command_line import PROGRAM
from fakes.local_jobs import ENDED, channel
from fakes.processes import processes_naming, until
from fakes.promptness import TooLateError
from faults import damage, test_job_folders, test_power_cut
from faults.disks import JOURNAL_LOST, JOURNAL_WRITTEN, fill, power_cut, small_disk
from faults.victims import BOUND, TIDY, Run

TRAIN = (Path(__file__).parent / "programs" / "train.py").read_text()
#: A server of a parameter server job, in the place of TensorFlow, which takes seconds to import.
_SERVER = """
import types, time
class Server:
    def __init__(self, *_, **__): pass
    def join(self): time.sleep(600)
distribute = types.SimpleNamespace(Server=Server)
"""
SIZE = 1 << 20
OBJECTS = {f"part-{number}": random.Random(number).randbytes(60_000) for number in range(5)}
#: As many as in the program.
STEPS = 60
#: What a reason may say of memory.
HINT = "If it was not killed on purpose, memory ran out"
#: Seconds in which one verb answers.
VERB = 60.0


class ViolationError(AssertionError):
    """One promise that did not hold: ``kind`` is "lie", "hang" or "left over"."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


class ChaosJob(Run):
    """A run of `faults.victims` with other jobs and faults, the answers of the commands, and more that may be left."""

    def __init__(self, plan, folder, server, train=TRAIN, bound=BOUND):
        super().__init__(plan, folder)
        self._server, self._train, self._bound = server, train, bound
        self._follower = None
        self.before = {"TrainingJobStatus": ""}

    def play(self):
        """Let it happen; return how the job ended. Raise `ViolationError` if something is not as it must be."""
        try:
            if self.plan.fault in ("power cut", "read-only disk"):
                return self._play_on_a_cut_disk()
            if self.plan.fault == "disk full":
                with small_disk(self.jobs.folder / "disk", "tmpfs") as disk:
                    self.jobs = type(self.jobs)(disk, stop_grace=5.0)
                    try:
                        return self._play()
                    finally:
                        self.jobs.close()
            return self._play()
        except TooLateError as error:
            raise ViolationError("left over" if "left:" in str(error) else "hang", str(error)) from error

    def close(self):
        if self._follower:
            self._follower.kill()
            self._follower.communicate()
        super().close()

    def _play(self):
        self.name = self._start()
        self._follow()
        self._await_phase()
        self._strike()
        if self.plan.fault == "rm":
            return self._check_removed()
        description = until(lambda: self.jobs.ended(self.name), self._bound, lambda: f"{self.name} has no end")
        self._check(description)
        return "garbled" if self.plan.fault == "garbled" else description["TrainingJobStatus"]

    def _start(self):
        plan = self.plan
        hosts, parameters, shell = LAYOUTS[plan.layout]
        files, environment = {}, {"TMPDIR": str(self.tmpdir), "SCRIPTMODE_HOST_TIMEOUT_SECONDS": "4"}
        if plan.layout == "ps":
            (self.jobs.folder / "modules").mkdir()
            (self.jobs.folder / "modules" / "tensorflow.py").write_text(_SERVER)
            environment["PYTHONPATH"] = str(self.jobs.folder / "modules")
        if shell:
            words = f'exec "{sys.executable}" "$(dirname "$0")/train.py" "$@"\n'
            files, parameters = {"train.sh": f"#!/bin/sh\n{words}"}, {"sagemaker_program": "train.sh"}
        more = {
            "TrainingJobName": test_job_folders.VICTIM if plan.fault == "garbled" else "chaos-1",
            "Environment": environment,
        }
        if plan.retries:
            more["RetryStrategy"] = {"MaximumRetryAttempts": plan.retries}
            more["CheckpointConfig"] = {"S3Uri": f"file://{self.jobs.folder}/checkpoints"}
            environment["CHECKPOINTS"] = "/opt/ml/checkpoints"
        parameters = {**parameters, "seconds": plan.seconds, "mode": plan.mode, "size": SIZE}
        data = channel("train", self._data_uri(), InputMode=plan.mode)
        return self.jobs.start(
            self._train, hosts=hosts, hyperparameters=parameters, channels=[data], files=files, more=more
        )

    def _data_uri(self):
        """Return where the job's input is: objects that have their fault, or files."""
        if self.plan.fault == "S3":
            return self._server.add(self.plan.seed, OBJECTS, S3_FAULTS[self.plan.s3], self.plan.many)
        folder = self.jobs.folder / "data"
        folder.mkdir()
        for name, content in OBJECTS.items():
            (folder / name).write_bytes(content)
        return f"file://{folder}"

    def _follow(self):
        words = (PROGRAM, "logs", "--follow", "--plain", self.name)
        environment = {
            **os.environ,
            "SCRIPTMODE_DATA_DIR": str(self.jobs.data_dir),
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        self._environment = environment
        if self.plan.fault not in ("garbled", "rm"):
            self._follower = subprocess.Popen(
                words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
            )  # fmt: skip

    def _await_phase(self):
        wanted = "Training" if self.plan.phase == "Stopping" else self.plan.phase

        def there():
            described = self.jobs.platform.describe(self.name).response
            passed = [each["Status"] for each in described["SecondaryStatusTransitions"]]
            return wanted in (*passed, "Pending") or described["TrainingJobStatus"] in ENDED

        until(there, self._bound, lambda: f"{self.name} is never {wanted}")
        if self.plan.phase == "Stopping":
            self.jobs.platform.stop(self.name)
        time.sleep(self.plan.delay)

    def _strike(self):
        fault = self.plan.fault
        if self.plan.is_signal:
            self.kill = signal.SIGTERM if fault == "SIGTERM" else signal.SIGKILL
            super()._strike()
        elif fault == "stop":
            self.jobs.platform.stop(self.name)
        elif fault == "disk full":
            filler = fill(self.jobs.folder)
            time.sleep(self.plan.seconds)
            filler.unlink()

    def _check(self, description):
        status, reason = description["TrainingJobStatus"], description.get("FailureReason", "")
        allowed = self.plan.allows(self.victim[0])
        self._true(status in allowed, f"{status} is not possible here: {reason}")
        self._true(
            len(reason) <= 1024 and re.search(allowed[status], reason), f"{status} with another cause: {reason!r}"
        )
        self._true("emory ran out" not in reason.replace(HINT, ""), f"asserted, though not known: {reason!r}")
        if self.before["TrainingJobStatus"] in ENDED:
            self._true(status == self.before["TrainingJobStatus"], "an end changed")
        if status == "Completed":
            self._true(self.jobs.model(description).get("weights") == _model(self.plan), "Completed with another model")
        # The next call removes the rest of an agent that was killed after the end.
        until(lambda: self.jobs.ended(self.name) and not self._left(), TIDY, lambda: f"left: {self._left()}")
        self._check_answers(description)
        if self.plan.fault == "garbled":
            self._garble()

    def _check_answers(self, description):
        """Hold all answers about the end against each other."""
        status = description["TrainingJobStatus"]
        self._true(self.jobs.platform.describe(self.name).response == description, "an end changed")
        (summary,) = self.jobs.platform.list()
        self._true(
            (summary["TrainingJobName"], summary["TrainingJobStatus"]) == (self.name, status), f"list: {summary}"
        )
        last = description["SecondaryStatusTransitions"][-1]["Status"]
        self._true(last == status, f"the last event is {last}")
        if self._follower:
            with _Bounded("logs"):
                self._follower.communicate(timeout=VERB)
            code = self._follower.returncode
            self._true(
                code == {"Completed": 0, "Stopped": 143}.get(status, code or -1),
                f"logs exits with {code} after {status}",
            )
        if random.Random(self.plan.seed).random() < 0.2:
            told = json.loads(self._verb("describe", self.name, "--json").stdout)
            self._true(
                all(told[key] == description.get(key) for key in ("TrainingJobStatus", "SecondaryStatus")),
                "describe --json",
            )

    def _check_removed(self):
        done = self._verb("rm", "--force", self.name)
        self._true(done.returncode == 0 or "Traceback" not in done.stderr, done.stderr)
        if done.returncode == 0:
            self._true(not os.path.lexists(self.jobs.job_folder(self.name).path), "rm left the job's directory")
        until(lambda: not self._left(), TIDY, lambda: f"left: {self._left()}")
        return "removed"

    def _garble(self):
        """Damage one file of the job, and ask some verbs about it."""
        chance, path = random.Random(self.plan.seed), self.jobs.job_folder(self.name).path
        file, kind = chance.choice(test_job_folders.FILES[:-1]), chance.choice(list(damage.KINDS))
        if (path / file).parent.is_dir():
            damage.KINDS[kind](path / file, chance)
        for number, verb in enumerate(("list", *chance.sample(test_job_folders.VERBS[4:], 3))):
            done = self._verb(*test_job_folders.words(verb, self.jobs.folder / f"new-{number}"))
            where = f"{verb} after {kind} of {file}"
            self._true("Traceback" not in done.stderr, f"{where}: {done.stderr}")
            named = self.name in done.stderr or verb.startswith(test_job_folders.OF_THE_REQUEST)
            self._true(done.returncode in (0, 143) or named, f"{where}: {done.stderr}")
        self._true(self._verb("rm", "--force", self.name).returncode == 0, f"rm after {kind} of {file}")

    def _play_on_a_cut_disk(self):
        """Cut the power of the job's disk, or make it read-only first, and read what is left there."""
        chance = random.Random(self.plan.seed)
        with power_cut(self.jobs.folder) as disk:
            jobs = type(self.jobs)(disk.folder)
            name = test_power_cut.start(jobs)
            time.sleep(chance.uniform(0.0, 2.0))
            if self.plan.fault == "read-only disk":
                subprocess.run(("mount", "-o", "remount,abort", disk.folder), check=False, capture_output=True)
                jobs.platform.describe(name)
                jobs.platform.list()
            disk.cut(chance.choice((JOURNAL_LOST, JOURNAL_WRITTEN)))
            try:
                return test_power_cut.check(jobs, name)["TrainingJobStatus"]
            except AssertionError as error:
                raise ViolationError("lie", str(error)) from error

    def _verb(self, *words):
        with _Bounded(" ".join(words)):
            return subprocess.run(
                (PROGRAM, *words), check=False, capture_output=True, text=True, errors="replace", timeout=VERB, env=self._environment, stdin=subprocess.DEVNULL
            )  # fmt: skip

    def _left(self):
        """Return also drafts, FIFOs, sockets, and processes that have the job's directories in their environment."""
        files = [Path(place) for place in _names(self.jobs.data_dir)]
        drafts = [str(path) for path in files if path.name.startswith(".scriptmode-new-")]
        special = [str(path) for path in files if _is_special(path)]
        follower = {self._follower.pid} if self._follower else set()
        named = {
            *processes_naming(f"TMPDIR={self.tmpdir}"),
            *processes_naming(f"{self.jobs.data_dir}/jobs/"),
        } - follower
        return [*super()._left(), *drafts, *special, *(f"process {pid}" for pid in sorted(named))]

    @staticmethod
    def _true(holds, text):
        if not holds:
            raise ViolationError("lie", text)


def _model(plan):
    """Return the model of a job without a fault."""
    digest, chain = hashlib.sha256(b"".join(OBJECTS.values())), ""
    for number in range(STEPS if plan.retries else 0):
        chain = hashlib.sha256(f"{chain} {number}".encode()).hexdigest()
    digest.update(chain.encode())
    return random.Random(digest.hexdigest()).randbytes(SIZE)


class _Bounded:
    """Report what does not answer as a hang."""

    def __init__(self, what):
        self._what = what

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, subprocess.TimeoutExpired):
            raise ViolationError("hang", f"{self._what} does not answer within {VERB:g} s") from error


def _names(folder):
    return [f"{place}/{name}" for place, _, names in os.walk(folder) for name in names]


def _is_special(path):
    with suppress(OSError):
        mode = path.lstat().st_mode
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
    return False


def new_folder():
    """Return a new directory for one job."""
    return Path(tempfile.mkdtemp(prefix="scriptmode-chaos-"))
