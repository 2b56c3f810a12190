"""The conformance suite for engines: what every engine must do, as a class of tests that pytest runs.

The guide "engines" has an example. Scripts of the suite are plain Python, and it uses public names alone.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from scriptmode._estimator import Estimator
from scriptmode.errors import JobNotFoundError, TrainingJobError, TrainingJobFailed, TrainingJobStopped

if TYPE_CHECKING:
    from scriptmode._job import TrainingJob
    from scriptmode_local import LocalPlatform

#: Seconds of limits that are not the subject of a test: they only end a test that would never end.
_LIMIT = 300.0
#: Seconds from SIGTERM to SIGKILL, except in the test of scripts that ignore SIGTERM.
_GRACE = 60.0
#: The beginning of each script: what a host reports is in the model, in a file with the host's name.
_BEGIN = """
import hashlib, json, os, signal, sys, time
from pathlib import Path

host = os.environ["SM_CURRENT_HOST"]
is_last = host == json.loads(os.environ["SM_HOSTS"])[-1]
model, output = Path(os.environ["SM_MODEL_DIR"]), Path(os.environ["SM_OUTPUT_DATA_DIR"])

def report(value):
    (model / f"{host}.json").write_text(json.dumps(value))

"""
_REPORTS = """
for number in range(100):
    print(f"line {number} of {host}", flush=True)
for folder in (model, output):
    (folder / "own").open("x").close()  # fails where two hosts have the same directory
(output / host).write_bytes(host.encode() + bytes(range(256)))
config = json.loads(Path(os.environ["SM_INPUT_CONFIG_DIR"], "resourceconfig.json").read_text())
channel = Path(os.environ["SM_CHANNEL_TRAIN"])
files = [path for path in channel.rglob("*") if path.is_file()]
report({
    "names": [config["current_host"], config["hosts"], json.loads(os.environ["SM_HOSTS"])],
    "files": {path.relative_to(channel).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
    "hyperparameters": [sys.argv[1:], json.loads(os.environ["SM_HPS"])],
})
"""
_LAST_HOST_FAILS = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
beats = 0
while not (is_last and beats == 20):
    beats += 1
    (output / "beats").write_text(str(beats))
    time.sleep(0.1)
sys.exit("row 3 has no label")
"""
_KILLS_ITSELF = "os.kill(os.getpid(), signal.SIGKILL)"
_SAVES_AT_SIGTERM = """
def save(*_):
    time.sleep(2)
    report("saved")
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(3600)
"""
_IGNORES_SIGTERM = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
report("before")
print("ready", flush=True)
while True:
    output.mkdir(parents=True, exist_ok=True)
    (output / "beats").write_text(str(time.monotonic()))
    time.sleep(0.1)
"""
#: Prints what another process reads of a job, and stops it.
_OTHER_PROCESS = """
import sys
from scriptmode_local import LocalPlatform

platform, name = LocalPlatform(data_dir=sys.argv[1]), sys.argv[2]
print(repr(platform.describe(name).response))
if sys.argv[3:]:
    platform.stop(name)
"""


class EngineSuite:
    """What every engine must do; pytest runs the tests of a class that derives from it.

    >>> class TestNiced(EngineSuite):
    ...     instance_type = "niced"

    Each test has a data directory of its own, in pytest's ``tmp_path``, and deletes its job. A subclass may override
    `create_platform`, and may mark tests or define fixtures, as any class of tests.

    Attributes:
        instance_type: The instance type of the hosts: the name of the entry point.
        hosts: Number of hosts of each job, at least 2.
        arguments: Further arguments of `Estimator`, such as ``image_uri``.
    """

    instance_type: ClassVar[str] = ""
    hosts: ClassVar[int] = 2
    arguments: ClassVar[Mapping[str, Any]] = {}

    def create_platform(self, data_dir: Path, stop_grace: float) -> LocalPlatform:
        """Return a platform with the jobs of a directory, and these seconds from SIGTERM to SIGKILL."""
        from scriptmode_local import LocalPlatform

        return LocalPlatform(data_dir=data_dir, stop_grace=stop_grace)

    def test_each_host_has_names_inputs_directories_and_a_log_of_its_own(self, tmp_path: Path) -> None:
        """Check a completed job: what its hosts were given, byte for byte, their lines, and what they delivered."""
        files = {"empty": b"", "large": bytes(range(256)) * 12_289, "a folder/données 1.bin": b"\r\n\0\xff"}
        for path, content in files.items():
            (tmp_path / "in" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "in" / path).write_bytes(content)
        values = {"layers": [1, 2], "rate": 0.1, "title": 'it\'s "one" $HOME, é\n'}
        arguments = ["--layers", "[1, 2]", "--rate", "0.1", "--title", values["title"]]
        given: dict[str, Any] = {"hyperparameters": values, "output_path": (tmp_path / "out").as_uri()}
        with self._job(tmp_path, _REPORTS, {"train": tmp_path / "in"}, **given) as job:
            assert job.wait(_LIMIT)["TrainingJobStatus"] == "Completed"
            assert len(job.hosts) == self.hosts
            assert _reports(job, tmp_path) == {
                host: {
                    "names": [host, job.hosts, job.hosts],
                    "files": {path: hashlib.sha256(content).hexdigest() for path, content in files.items()},
                    "hyperparameters": [arguments, values],
                }
                for host in job.hosts
            }
            assert list(job.platform.log_locations(job.name)) == job.hosts
            for host in job.hosts:
                lines = [event.message for event in job.logs(hosts=[host]) if event.message.startswith("line ")]
                assert lines == [f"line {number} of {host}" for number in range(100)]
            delivered = tmp_path / "out" / job.name / "output"
            assert job.model_data == (delivered / "model.tar.gz").as_uri()
            assert _archived(delivered / "model.tar.gz").keys() == {"own", *(f"{host}.json" for host in job.hosts)}
            written = {host: host.encode() + bytes(range(256)) for host in job.hosts}
            assert _archived(delivered / "output.tar.gz") == {"own": b"", **written}

    def test_a_host_that_fails_ends_the_others_and_is_named_with_its_exit_code(self, tmp_path: Path) -> None:
        """Check the error of the last host, and that the others, which ignore SIGTERM, write nothing more."""
        with self._job(tmp_path, _LAST_HOST_FAILS) as job:
            error = _error(job)
            assert isinstance(error, TrainingJobFailed)
            assert (error.failure.host, error.failure.exit_code) == (job.hosts[-1], 1)
            assert "row 3 has no label" in error.reason
            assert "row 3 has no label" in str(error)
            folders = job.platform.host_folders(job.name)
            assert list(folders) == job.hosts
            beats = [folder / "output" / "data" / "beats" for folder in folders.values()]
            assert beats[-1].read_text() == "20"
            _wait_until(lambda: _are_unchanged(beats), "the other hosts to end")

    def test_a_script_that_is_killed_fails_with_its_signal(self, tmp_path: Path) -> None:
        """Check the signal, and the exit code that stands for it."""
        with self._job(tmp_path, _KILLS_ITSELF) as job:
            error = _error(job)
            assert isinstance(error, TrainingJobFailed)
            assert (error.failure.signal, error.failure.exit_code) == ("SIGKILL", 137)

    def test_a_script_that_ignores_sigterm_is_killed_and_its_model_is_delivered(self, tmp_path: Path) -> None:
        """Check a job that ends at the end of the grace period."""
        with self._job(tmp_path, _IGNORES_SIGTERM, stop_grace=2.0) as job:
            _wait_until_ready(job)
            job.stop()
            assert isinstance(_error(job), TrainingJobStopped)
            assert _reports(job, tmp_path) == dict.fromkeys(job.hosts, "before")

    def test_a_job_that_exceeds_max_run_is_stopped(self, tmp_path: Path) -> None:
        """Check that the job ends, as MaxRuntimeExceeded."""
        with self._job(tmp_path, "time.sleep(3600)", max_run=3) as job:
            error = _error(job)
            assert isinstance(error, TrainingJobStopped)
            assert error.secondary_status == "MaxRuntimeExceeded"

    def test_another_process_describes_and_stops_the_job_whose_last_work_is_delivered(self, tmp_path: Path) -> None:
        """Check descriptions by a process that did not start the job, and what each host saves at SIGTERM."""
        with self._job(tmp_path, _SAVES_AT_SIGTERM) as job:
            _wait_until_ready(job)
            assert "'TrainingJobStatus': 'InProgress'" in _other_process(job, tmp_path / "data", "stop")
            error = _error(job)
            assert isinstance(error, TrainingJobStopped)
            assert (error.status, error.secondary_status) == ("Stopped", "Stopped")
            assert _other_process(job, tmp_path / "data") == repr(job.describe())
            assert _reports(job, tmp_path) == dict.fromkeys(job.hosts, "saved")

    def test_a_deleted_job_ends_and_its_directory_does_not_return(self, tmp_path: Path) -> None:
        """Check that a running job, whose hosts create their files again, is deleted."""
        self._check_deletion(tmp_path)

    def test_a_job_whose_record_is_damaged_is_deleted_as_any(self, tmp_path: Path) -> None:
        """Check that hosts are found without the request; what is left of them elsewhere, the suite's user knows."""
        self._check_deletion(tmp_path, record="{")

    def _check_deletion(self, tmp_path: Path, record: str = "") -> None:
        with self._job(tmp_path, _IGNORES_SIGTERM) as job:
            _wait_until_ready(job)
            platform = self.create_platform(tmp_path / "data", _GRACE)
            if record:
                (tmp_path / "data" / "jobs" / job.name / "job.json").write_text(record)
            platform.delete(job.name)
            assert platform.list() == []
            time.sleep(1)  # ten times as long as a host waits between two writes
            assert list((tmp_path / "data" / "jobs").iterdir()) == []

    @contextmanager
    def _job(
        self, tmp_path: Path, script: str, inputs: object = None, *, stop_grace: float = _GRACE, **arguments: Any
    ) -> Iterator[TrainingJob]:
        """Start a job in ``tmp_path``, and delete it at the end."""
        (tmp_path / "source").mkdir()
        (tmp_path / "source" / "train.py").write_text(_BEGIN + script)
        platform = self.create_platform(tmp_path / "data", stop_grace)
        estimator = Estimator(
            entry_point="train.py",
            source_dir=tmp_path / "source",
            role="engine-suite",
            instance_type=self.instance_type,
            instance_count=self.hosts,
            platform=platform,
            **self.arguments,
            **arguments,
        )
        job = estimator.fit(inputs, wait=False, logs=False)
        try:
            yield job
        finally:
            with suppress(JobNotFoundError):
                platform.delete(job.name)


def _error(job: TrainingJob) -> TrainingJobError | None:
    """Wait until a job has ended; return its error."""
    try:
        job.wait(_LIMIT)
    except TrainingJobError as error:
        return error
    return None


def _reports(job: TrainingJob, tmp_path: Path) -> dict[str, Any]:
    """Return what each host of an ended job reported."""
    model = job.download_model(tmp_path / "model")
    return {path.stem: json.loads(path.read_text()) for path in model.glob("*.json")}


def _archived(archive: Path) -> dict[str, bytes]:
    """Return the content of each file in an archive by its path."""
    with tarfile.open(archive) as opened:
        files = {member.name: opened.extractfile(member) for member in opened}
        return {name: file.read() for name, file in files.items() if file}


def _wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"waited {_LIMIT:.0f} s for {what}"
        time.sleep(0.05)


def _wait_until_ready(job: TrainingJob) -> None:
    """Wait until each host has printed that its script is ready."""

    def is_ready() -> bool:
        assert not job.ended, job.failure_reason or job.status
        return {event.host for event in job.logs() if event.message == "ready"} == set(job.hosts)

    _wait_until(is_ready, "the script of each host")


def _are_unchanged(files: Sequence[Path]) -> bool:
    """Return whether no file is written for a second, ten times as long as a host waits between two writes."""

    def times() -> list[int]:
        return [file.stat().st_mtime_ns for file in files if file.exists()]

    before = times()
    time.sleep(1)
    return before == times()


def _other_process(job: TrainingJob, data_dir: Path, *arguments: str) -> str:
    """Return the text of a job's description in another process; ``arguments`` make it stop the job."""
    command = (sys.executable, "-c", _OTHER_PROCESS, str(data_dir), job.name, *arguments)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=_LIMIT).stdout.strip()
