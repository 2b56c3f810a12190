"""The durable job store: one folder a job, and this module alone knows what is where in it.

``<data dir>/jobs/<job>/``
  ``job.json``        the request and how it is run; written once
  ``state.json``      where it stands; small, replaced as a whole
  ``agent.lock``      held (flock) by the job's agent as long as that lives; in it, when the agent last worked
  ``processes.json``  the agent and the hosts' launchers
  ``progress.json``   how far the channels' data is
  ``reserve``         space for the last state, on a disk that is full by then; gone when the job ended
  ``stop``            there once somebody asked the job to stop
  ``agent.log``       the agent's own trouble
  ``logs/``           one file a host
  ``channels/``       staged inputs, shared by the hosts, and what is known of checkpoints; gone when the job ended
  ``hosts/<host>/``   the host's /opt/ml; kept after a failure
  ``output/``         model.tar.gz and output.tar.gz, unless the job's output path is elsewhere

Files are replaced by rename after fsync, so a reader sees the old or the new one, also after a power cut. That a job
was created and how it ended is durable at once.
A job whose files are damaged all the same, by whatever, raises `UnreadableJobError` and leaves the others alone.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import signal
import stat
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from scriptmode.data import regular_files
from scriptmode.data_dir import DATA_DIR_VARIABLE
from scriptmode.errors import DataError, JobExistsError, JobNotFoundError, UnreadableJobError
from scriptmode.messages import did_you_mean
from scriptmode.platforms.base import ChannelProgress
from scriptmode.platforms.local.store import heartbeat, job_shape, logs, shapes
from scriptmode.platforms.local.store import state as states
from scriptmode.platforms.local.system import full_disk, process_tree
from scriptmode.platforms.local.system.durable import Entries, replace_file, sync_directory
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scriptmode.platforms.local.store.state import JobState
    from scriptmode.platforms.local.system.process_tree import Identity

_Read = TypeVar("_Read")
#: What is said where a file may be looked at and not be written.
_READ_ONLY = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
#: The service's pattern for names of training jobs. (CreateTrainingJob, TrainingJobName)
_JOB_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
_PROCESSES = {"*": {"pid!": int, "started!": int, "boot!": str}}
_PROGRESS = [{"channel!": str, "mode!": str, "done!": int}]


@dataclass(frozen=True)
class Job:
    """What is settled about a job when it is created."""

    request: Mapping[str, Any]
    arn: str
    region: str
    python: str
    stop_grace: float
    #: File systems' ids and their folders on this machine.
    file_systems: Mapping[str, str] = field(default_factory=dict)
    #: What containers may use: the fields of `limits.ContainerLimits`.
    limits: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobFolder:
    """One job's folder."""

    path: Path

    @property
    def name(self) -> str:
        """The job's name."""
        return self.path.name

    @property
    def label(self) -> str:
        """What tells this job from every other of this machine."""
        return str(self.path)

    @property
    def agent_log(self) -> Path:
        """The agent's own trouble."""
        return self.path / "agent.log"

    @property
    def lock_file(self) -> Path:
        """Held by the job's agent as long as it lives."""
        return self.path / "agent.lock"

    @property
    def reserve(self) -> full_disk.Reserve:
        """Space for the job's last state."""
        return full_disk.Reserve(self.path / "reserve")

    @property
    def channels(self) -> Path:
        """Where inputs are staged once for all hosts."""
        return self.path / "channels"

    @property
    def hosts(self) -> Path:
        """The folder of the hosts' sandboxes."""
        return self.path / "hosts"

    @property
    def output(self) -> Path:
        """Where artifacts are packed, and stay when they cannot be delivered."""
        return self.path / "output"

    def host(self, name: str) -> Path:
        """Give one host's sandbox."""
        return self.hosts / name

    def log(self, host: str) -> Path:
        """Give one host's log."""
        return self.path / "logs" / f"{host}.log"

    def read_job(self) -> Job:
        """Return what was settled at creation; raise `UnreadableJobError` or `JobNotFoundError`."""
        return self._read("job.json", self._job)

    def read_state(self) -> JobState:
        """Return where the job stands; raise `UnreadableJobError` or `JobNotFoundError`."""
        return self._read("state.json", self._state)

    def _job(self, content: Any) -> Job:
        job_shape.validate_job_record(content, self.name)
        return Job(**content)

    def _state(self, content: Any) -> JobState:
        state = states.state_from_json(content)
        if state.name != self.name:
            raise ValueError(f"it is of the job {state.name!r}")
        return state

    def write_state(self, state: JobState) -> None:
        """Record where the job stands, on a full disk too once it ended; that is durable when this returns."""
        content, file = _json(state.to_json()), self.path / "state.json"
        try:
            replace_file(file, content, directory=state.ended)
        except OSError as error:
            if not (state.ended and full_disk.is_full(error)):
                raise
            try:
                self.reserve.write(file, content)
            except FileNotFoundError:
                raise error from None
        if state.ended:
            with suppress(OSError):
                self.reserve.release()

    def version(self) -> object:
        """Give a value that changes whenever the state is written, and when the job is asked to stop."""
        with suppress(OSError):
            status = (self.path / "state.json").stat()
            return status.st_ino, status.st_mtime_ns, (self.path / "stop").exists()
        return None

    def request_stop(self) -> None:
        """Leave the request to stop where the agent looks; on a full disk, ask the agent by SIGTERM.

        Raises `DataError` where nothing can be written.
        """
        try:
            (self.path / "stop").touch()
        except OSError as error:
            if full_disk.is_full(error) and (agent := self.read_processes().get("agent")):
                process_tree.send(agent, signal.SIGTERM)
                return
            raise DataError(
                f"training job {self.name} cannot be asked to stop: {error}; stop it where its folder can be written"
            ) from error

    def stop_requested(self) -> float | None:
        """Return when the stop was asked, in seconds since the epoch; None when it was not."""
        try:
            return min(max(0.0, (self.path / "stop").stat().st_mtime), shapes.LAST_SECOND)
        except OSError:
            return None

    def write_processes(self, processes: Mapping[str, Identity]) -> None:
        """Record the agent and the launchers for whoever finds the agent dead."""
        content = {name: asdict(identity) for name, identity in processes.items()}
        replace_file(self.path / "processes.json", _json(content))

    def read_processes(self) -> dict[str, Identity]:
        """Return what `write_processes` recorded; nothing of a file that cannot be read.

        After a power cut none of its processes is left.
        """
        from scriptmode.platforms.local.system.process_tree import Identity

        try:
            content = regular_files.read_json(self.path / "processes.json")
            shapes.validate_shape(content, _PROCESSES, "")
            return {name: Identity(**identity) for name, identity in content.items()}
        except (OSError, ValueError, TypeError):
            return {}

    @property
    def never_had_processes(self) -> bool:
        """Whether no agent came so far as to record itself."""
        return not os.path.lexists(self.path / "processes.json")

    def write_progress(self, progress: list[ChannelProgress]) -> bool:
        """Record how far the channels' data is; False where it cannot be written."""
        try:
            replace_file(self.path / "progress.json", _json([asdict(each) for each in progress]), durable=False)
        except OSError:
            return False
        return True

    def read_progress(self) -> tuple[ChannelProgress, ...]:
        """Return what `write_progress` recorded; nothing of a file that cannot be read, for it is only shown."""
        try:
            content = regular_files.read_json(self.path / "progress.json")
            shapes.validate_shape(content, _PROGRESS, "")
            found = tuple(ChannelProgress(**each) for each in content)
            return found if all(_is_count(count) for each in found for count in (each.total, each.epoch)) else ()
        except (OSError, ValueError, TypeError):
            return ()

    def silent_since(self) -> float | None:
        """Return since when the agent has not answered, in seconds since the epoch; None while it does."""
        return heartbeat.silent_since(self.lock_file)

    def is_deleted(self, lock: int) -> bool:
        """Say whether the job whose agent holds ``lock`` was deleted: by removing its folder, wholly or not yet."""
        try:
            mine = os.path.samestat(os.fstat(lock), self.lock_file.stat())
            return not (mine and (self.path / "state.json").exists())
        except (FileNotFoundError, NotADirectoryError):
            return True

    def remove_rest(self) -> None:
        """Remove what was written while the folder was being removed; a new job of the same name is left alone."""
        if not self.lock_file.exists() and not (self.path / "state.json").exists():
            with suppress(OSError):
                beneath.remove_tree(self.path)

    @contextmanager
    def try_lock(self) -> Iterator[bool | None]:
        """Try to take the dead agent's place; False while an agent (or another in its place) lives.

        Where the folder cannot be written, no process takes that place: None says that the agent is dead.
        """
        descriptor, is_writable = self._open_lock()
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if is_writable else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        except OSError as error:
            raise self.unreadable(self.lock_file, error) from error
        else:
            yield True if is_writable else None
        finally:
            os.close(descriptor)

    def _open_lock(self) -> tuple[int, bool]:
        """Open the lock file; return its descriptor and whether it, and so the folder, can be written."""
        flags = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            try:
                return os.open(self.lock_file, os.O_RDWR | flags), True
            except OSError as error:
                if error.errno not in _READ_ONLY:
                    raise
                return os.open(self.lock_file, os.O_RDONLY | flags), False
        except OSError as error:
            raise self._missing(self.lock_file, error) from error

    def agent_log_tail(self, lines: int = 5) -> str:
        """Give the last lines of the agent's log."""
        return logs.last_lines(self.agent_log, lines, 1000)

    def unreadable(self, path: Path, cause: object) -> UnreadableJobError:
        """Return the error that says which file of the job cannot be read, and why."""
        # The path is named already.
        if isinstance(cause, OSError) and cause.strerror:
            cause = cause.strerror
        return UnreadableJobError(self.name, path, cause, is_running=self._has_agent())

    def _has_agent(self) -> bool:
        """Return whether an agent holds the job's lock; False where that cannot be found out."""
        with suppress(OSError):
            descriptor = os.open(self.lock_file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            finally:
                os.close(descriptor)
        return False

    def _read(self, file: str, understand: Callable[[Any], _Read]) -> _Read:
        path = self.path / file
        try:
            return understand(regular_files.read_json(path))
        except OSError as error:
            raise self._missing(path, error) from error
        except (TypeError, ValueError) as error:
            raise self.unreadable(path, error) from error

    def _missing(self, path: Path, error: OSError) -> JobNotFoundError | UnreadableJobError:
        """Return the error for a file that cannot be opened: a job whose folder is gone was deleted."""
        if isinstance(error, (FileNotFoundError, NotADirectoryError)) and not self.path.is_dir():
            return self._gone()
        return self.unreadable(path, error)

    def _gone(self) -> JobNotFoundError:
        return JobNotFoundError(
            f"there is no training job {self.name!r} any more: its folder {self.path} was removed; start it again, or "
            "look at those that are left: scriptmode list"
        )


class JobStore:
    """All jobs of one data directory, and the places they share."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.jobs = data_dir / "jobs"
        self.sources = data_dir / "sources"
        self.ports = data_dir / "ports"
        #: What is known of ended jobs without reading their states.
        self.ended_jobs = data_dir / "ended-jobs.json"

    @contextmanager
    def create(self, job: Job, state: JobState) -> Iterator[tuple[JobFolder, int]]:
        """Write a new job's folder, complete or not at all; yield it and the agent's lock, held.

        The lock is handed on to the agent by inheritance, so no one ever finds it free while the job is coming up.
        """
        draft, lock = self._draft(job, state)
        try:
            folder = JobFolder(self.jobs / state.name)
            try:
                draft.path.rename(folder.path)
            except OSError as error:
                raise JobExistsError(f"there is a training job named {state.name!r}; use another name") from error
            sync_directory(self.jobs)
            yield folder, lock
        finally:
            os.close(lock)
            with suppress(OSError):
                beneath.remove_tree(draft.path)

    def _draft(self, job: Job, state: JobState) -> tuple[JobFolder, int]:
        draft = lock = None
        try:
            entries = Entries()
            for directory in (self.data_dir, self.jobs):
                entries.make_directory(directory, mode=0o700)
            draft = JobFolder(Path(tempfile.mkdtemp(prefix=".new-", dir=self.jobs)))
            lock = _above_streams(os.open(draft.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            fcntl.flock(lock, fcntl.LOCK_EX)
            heartbeat.write_heartbeat(lock)
            draft.log("host").parent.mkdir()
            replace_file(draft.path / "job.json", _json(asdict(job)))
            draft.write_state(state)
            draft.reserve.allocate()
            # What comes up later finds it, on a full disk too.
            draft.agent_log.touch()
            entries.add(draft.path)
            entries.sync()
        except BaseException as error:
            if lock is not None:
                os.close(lock)
            if draft is not None:
                with suppress(OSError):
                    beneath.remove_tree(draft.path)
            if not isinstance(error, OSError):
                raise
            if full_disk.is_full(error):
                raise full_disk.described(error, self.data_dir) from error
            raise DataError(
                f"the data directory {self.data_dir} cannot be written: {error}; "
                f"make it writable or name another one in the environment variable {DATA_DIR_VARIABLE}"
            ) from error
        return draft, lock

    def find(self, name: str) -> JobFolder:
        """Return a job's folder, in whatever state; raise `JobNotFoundError`."""
        if not self.exists(name):
            known = self.names() - {name}
            raise JobNotFoundError(f"no training job named {name!r} in {self.jobs}{_did_you_mean(name, known)}")
        return JobFolder(self.jobs / name)

    def exists(self, name: str) -> bool:
        """Return whether there is a folder of a job of that name."""
        # Not by Path.is_dir, which raises for a name that is too long.
        return bool(name) and name[0] != "." and "/" not in name and os.path.isdir(self.jobs / name)  # noqa: PTH112

    def names(self) -> set[str]:
        """Give every job's name."""
        try:
            return {entry for entry in os.listdir(self.jobs) if entry[0] != "."}  # noqa: PTH208 - thousands
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise DataError(
                f"the data directory {self.data_dir} cannot be read: {error}; name another one in the environment "
                f"variable {DATA_DIR_VARIABLE}"
            ) from error

    def folder(self, name: str) -> JobFolder:
        """Give the folder of a job that is known to be there."""
        return JobFolder(self.jobs / name)

    def versions(self) -> Iterator[tuple[str, list[int]]]:
        """Yield every job's name with numbers that change whenever its state or its request is written, in no order.

        Each file has two, which are 0 where it is missing. Folders with names that no job can have are not this
        store's.
        """
        # First, as it says what is wrong with the folder.
        names = self.names()
        try:
            jobs = os.open(self.jobs, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            for name in names:
                try:
                    # Thousands of jobs: a function for each file would take longer than the calls of the system.
                    state = os.stat(f"{name}/state.json", dir_fd=jobs)
                    job = os.stat(f"{name}/job.json", dir_fd=jobs)
                except OSError:  # noqa: PERF203 - of what the loop does it is the cheapest
                    if version := _damaged_version(name, jobs):
                        yield name, version
                else:
                    yield name, [state.st_ino, state.st_mtime_ns, job.st_ino, job.st_mtime_ns]
        finally:
            os.close(jobs)


def _damaged_version(name: str, jobs: int) -> list[int] | None:
    """Return the version of a job of which a file cannot be looked at, zeros for that file; None for what is no job."""
    version = [*_file_version(f"{name}/state.json", jobs), *_file_version(f"{name}/job.json", jobs)]
    if version[0]:
        return version
    with suppress(OSError):
        if _JOB_NAME.fullmatch(name) and stat.S_ISDIR(os.stat(name, dir_fd=jobs).st_mode):
            return version
    return None


def _file_version(path: str, jobs: int) -> tuple[int, int]:
    with suppress(OSError):
        status = os.stat(path, dir_fd=jobs)
        return status.st_ino, status.st_mtime_ns
    return 0, 0


def _above_streams(descriptor: int) -> int:
    """Move a file out of the place of a standard stream that this process was started without."""
    if descriptor > 2:  # noqa: PLR2004 - stdin, stdout, stderr
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(descriptor)
    return moved


def _did_you_mean(name: str, known: set[str]) -> str:
    if len(known) > 1000:  # noqa: PLR2004 - difflib's time is what limits it
        return "; scriptmode list shows those that there are"
    return did_you_mean(name, known, most=5) or "; there are no jobs at all"


def _is_count(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _json(content: object) -> bytes:
    return json.dumps(content, indent=1).encode()
