"""The durable job store: one folder for each job. This module alone knows the layout of that folder.

``<data dir>/jobs/<job>/``
  ``hosts.json``      what the hosts are, and their engine's settings; written first, and once
  ``job.json``        the request and how it is run; written once
  ``state.json``      its state; small, replaced as a whole
  ``agent.lock``      held (flock) by the job's agent while it lives; contains the agent's heartbeat
  ``guard.lock``      held by the process that removes the containers of a killed agent; see `_hosts.job_containers`
  ``processes.json``  the agent and the hosts' launchers
  ``engine.json``     what a scheduler knows the job by, such as its number
  ``places.json``     where an engine runs each host, for people
  ``progress.json``   the progress of the channels' data
  ``usage/``          the resources that the hosts use and have used, two files for each of their agents
  ``reserve``         space for the final state, should the disk be full by then; removed when the job ended
  ``stop``            exists once a stop was requested, at its modification time; not empty for a stop without grace
  ``agent.log``       warnings and errors of the agent
  ``setup.log``       those of the lines that Slurm runs before the agent
  ``logs/``           one file for each host
  ``channels/``       staged inputs, shared by the hosts, and the record of copied checkpoints; removed at the end
  ``hosts/<host>/``   the host's /opt/ml; kept only after a failure
  ``output/``         model.tar.gz and output.tar.gz, unless the job's output path is elsewhere
  ``server/``         files of `scriptmode_serve`, which alone reads and writes them

Writers: the client that creates the job writes everything once, before the folder gets its name by a rename. From then
on the agent, which inherits the lock, is the only writer, but for ``stop``. When the agent is dead, the process that
gets the lock next writes the final state (`_agent.lost_agent`).

Files are replaced by rename after fsync, so a reader sees the old or the new one, also after a power cut. The creation
of a job and its final state are durable before the call returns.
A job whose files are damaged nevertheless raises `UnreadableJobError`; other jobs are not affected.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from scriptmode._core.machine import drafts
from scriptmode._core.machine.data_dir import DATA_DIR_VARIABLE, MARK, TUNING, unwritable_error
from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import DataError, JobExistsError, JobNotFoundError, RequestError, UnreadableJobError
from scriptmode_local._data import regular_files
from scriptmode_local._data.durable import ChangedDirectories, Reserve, replace_file, sync_directory, sync_file
from scriptmode_local._store import heartbeat, job_record, shapes, state as states
from scriptmode_local._system import file_owner
from scriptmode_local._system.directory_lock import above_streams, new_lock, try_lock
from scriptmode_local._system.together import run_together

if TYPE_CHECKING:
    from scriptmode._core.spec.host_values import ChannelProgress
    from scriptmode_local._store.job_record import Job, JobFacts
    from scriptmode_local._store.state import JobState
    from scriptmode_runtime._processes.proc import ProcessIdentity

_Read = TypeVar("_Read")
#: Errors of opening a file for writing that may still be readable.
_READ_ONLY = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
#: The service's pattern for names of training jobs. (CreateTrainingJob, TrainingJobName)
_JOB_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
#: Records of an engine about one job: what a scheduler knows the job by, and where the hosts are.
ENGINE_RECORD, _PLACES = "engine.json", "places.json"


@dataclass(frozen=True)
class AgentFolder:
    """The folder of a job, or of a tuning job, which has an agent."""

    path: Path

    @property
    def name(self) -> str:
        """The job's name."""
        return self.path.name

    @property
    def agent_log(self) -> Path:
        """The log of the agent: its warnings and errors."""
        return self.path / "agent.log"

    @property
    def server_files(self) -> Path:
        """The folder for the files of a server of SageMaker's API."""
        return self.path / "server"


class JobFolder(AgentFolder):
    """One job's folder."""

    @property
    def label(self) -> str:
        """A name of the job that is unique on this machine."""
        return str(self.path)

    @property
    def lock_file(self) -> Path:
        """The file whose lock the job's agent holds while it lives."""
        return self.path / "agent.lock"

    @property
    def guard_lock(self) -> Path:
        """The file whose lock the guard of the job's containers holds."""
        return self.path / "guard.lock"

    def usage_file(self, host: str) -> Path:
        """Return the record of what the hosts of an agent use; ``host`` is the first. See `host_activity`."""
        return self.path / "usage" / f"{host}.json"

    @property
    def reserve(self) -> Reserve:
        """Reserved space for the job's final state."""
        return Reserve(self.path / "reserve")

    @property
    def channels(self) -> Path:
        """The folder where inputs are staged once for all hosts."""
        return self.path / "channels"

    @property
    def hosts(self) -> Path:
        """The folder of the hosts' sandboxes."""
        return self.path / "hosts"

    @property
    def output(self) -> Path:
        """The folder where artifacts are packed, and stay when they cannot be delivered."""
        return self.path / "output"

    def host(self, name: str) -> Path:
        """Return the folder of a host's sandbox."""
        return self.hosts / name

    def log(self, host: str) -> Path:
        """Return the path of a host's log."""
        return self.path / "logs" / f"{host}.log"

    def read_job(self) -> Job:
        """Return the record of the job's creation; raise `UnreadableJobError` or `JobNotFoundError`."""
        return self._read("job.json", job_record.parse_job)

    def read_facts(self) -> JobFacts:
        """Return what the list of jobs shows, sooner than `read_job`; raise what that raises."""
        return self._read("job.json", job_record.summarize_job_record)

    def read_hosts(self) -> job_record.RecordedHosts:
        """Return what the hosts are, also where `read_job` raises; raise `UnreadableJobError` or `JobNotFoundError`."""
        return self._read("hosts.json", job_record.parse_hosts)

    def read_state(self) -> JobState:
        """Return the job's state; raise `UnreadableJobError` or `JobNotFoundError`."""
        return self._read("state.json", _parse_state)

    def write_state(self, state: JobState) -> None:
        """Write the job's state; a final one is written on a full disk too, and is durable when this returns."""
        content = regular_files.render_json(state.to_json(), _parse_state, state.name)
        file = self.path / "state.json"
        try:
            replace_file(file, content, directory=state.ended)
        except OSError as error:
            from scriptmode_local._system.full_disk import is_full

            if not (state.ended and is_full(error)):
                raise
            try:
                self.reserve.write(file, content)
            except FileNotFoundError:
                raise error from None
        if state.ended:
            with suppress(OSError):
                self.reserve.release()

    def version(self) -> object:
        """Return a value that changes whenever the state is written, and when a stop is requested."""
        with suppress(OSError):
            status = (self.path / "state.json").stat()
            return status.st_ino, status.st_mtime_ns, (self.path / "stop").exists()
        return None

    def request_stop(self, *, now: bool = False) -> None:
        """Create the file that requests a stop; where the folder cannot be written, send SIGUSR2 to the agent instead.

        With ``now`` the file is not empty: there is no grace period. Raises `DataError` where neither is possible.
        """
        try:
            (self.path / "stop").touch()
            if now:
                replace_file(self.path / "stop", b"now")
        except OSError as error:
            from scriptmode_runtime._processes import process_tree

            agent = self.read_processes().get("agent")
            is_asked = self.stop_requested() or (agent and process_tree.send_signal(agent, signal.SIGUSR2))
            if is_asked and not now:
                return
            what = f"training job {self.name} cannot be asked to stop{' now' if now else ''}: {error}"
            if is_asked:
                raise DataError(f"{what}; it stops after its grace period", "free some space, and try again") from error
            raise DataError(what, advice="stop it as a user, or on a machine, that can write its folder") from error

    def stop_requested(self) -> float | None:
        """Return when a stop was requested, in seconds since the epoch; None when it was not."""
        try:
            return min(max(0.0, (self.path / "stop").stat().st_mtime), shapes.LAST_SECOND)
        except OSError:
            return None

    @property
    def stops_now(self) -> bool:
        """Whether a stop without the grace period was requested."""
        with suppress(OSError):
            return (self.path / "stop").stat().st_size > 0
        return False

    def with_stop_request(self, state: JobState) -> JobState:
        """Return a state that is Stopping since the request; the agent records the same a moment later."""
        asked = self.stop_requested() if state.stoppable else None
        return state if asked is None else state.with_status("Stopping", asked)

    def write_processes(self, processes: Mapping[str, ProcessIdentity]) -> None:
        """Record the agent and the launchers for the process that later finds the agent dead."""
        content = {name: identity._asdict() for name, identity in processes.items()}
        replace_file(self.path / "processes.json", regular_files.render_json(content))

    def read_processes(self) -> dict[str, ProcessIdentity]:
        """Return what `write_processes` recorded; an empty dict for a file that cannot be read.

        That is safe after a power cut, which none of the processes survives.
        """
        try:
            return _parse_processes(regular_files.read_json(self.path / "processes.json"))
        except (OSError, ValueError, TypeError):
            return {}

    @property
    def never_had_processes(self) -> bool:
        """Whether no agent has ever recorded itself."""
        return not os.path.lexists(self.path / "processes.json")

    def write_progress(self, progress: list[ChannelProgress]) -> bool:
        """Write the progress of the channels; return whether that was possible."""
        try:
            content = regular_files.render_json([asdict(channel) for channel in progress])
            replace_file(self.path / "progress.json", content, durable=False)
        except OSError:
            return False
        return True

    def read_progress(self) -> tuple[ChannelProgress, ...]:
        """Return what `write_progress` recorded; nothing for a file that cannot be read, as it is only displayed."""
        from scriptmode._core.spec.host_values import ChannelProgress

        try:
            content = regular_files.read_json(self.path / "progress.json")
            shapes.validate_shape(content, shapes.PROGRESS, "")
            return tuple(ChannelProgress(**fields) for fields in content)
        except (OSError, ValueError, TypeError):
            return ()

    def write_record(self, file: str, record: Mapping[str, str]) -> None:
        """Record texts by their names in a file, such as `ENGINE_RECORD`; raise ``OSError``."""
        replace_file(self.path / file, regular_files.render_json(dict(record)))

    def read_record(self, file: str) -> dict[str, str]:
        """Return what `write_record` recorded; an empty dict without it. Raises `UnreadableJobError`."""
        try:
            return self._read(file, _parse_record)
        except UnreadableJobError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return {}
            raise

    def write_places(self, places: Mapping[str, str]) -> None:
        """Record where an engine runs each host, for people; raise ``OSError``."""
        self.write_record(_PLACES, places)

    def read_places(self) -> dict[str, str]:
        """Return what `write_places` recorded; nothing for a file that cannot be read, as it is only displayed."""
        with suppress(UnreadableJobError, JobNotFoundError):
            return self.read_record(_PLACES)
        return {}

    def last_heartbeat(self, state: JobState) -> float:
        """Return when an agent that is gone lived for certain, in seconds since the epoch; raise ``OSError``.

        Its hosts, which end with it, may have written later than it had its last heartbeat.
        """
        moments = [state.modified, self.lock_file.stat().st_mtime]
        with suppress(OSError):
            # Not the times of their lines, which a server writes, too.
            moments += [log.lstat().st_mtime for log in self.log("host").parent.glob("*.log")]
        return max(moments)

    def silent_since(self) -> float | None:
        """Return since when the agent has had no heartbeat, in seconds since the epoch; None while it has."""
        return heartbeat.silent_since(self.lock_file, self.read_processes().get("agent"))

    def is_deleted(self, lock: int) -> bool:
        """Return whether the job was deleted: its folder is removed, wholly or in part. ``lock`` is the agent's."""
        try:
            mine = os.path.samestat(os.fstat(lock), self.lock_file.stat())
            return not (mine and (self.path / "state.json").exists())
        except (FileNotFoundError, NotADirectoryError):
            return True

    def remove_rest(self) -> None:
        """Remove files written while the folder was being removed; leave a new job of the same name as it is."""
        if not self.lock_file.exists() and not (self.path / "state.json").exists():
            from scriptmode_runtime._files import directory_tree

            with suppress(OSError):
                directory_tree.remove_tree(self.path)

    @contextmanager
    def try_lock(self) -> Iterator[tuple[bool | None, int]]:
        """Try to lock the job in place of its agent; yield True when it is locked, False if another process holds it.

        Yield None where the agent is dead and the folder cannot be written, so that no process can act for it. The
        second value is the lock's descriptor, which a started agent inherits.
        """
        opened, is_writable = self._open_lock()
        descriptor = above_streams(opened)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if is_writable else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False, descriptor
        except OSError as error:
            raise self.unreadable(self.lock_file, error) from error
        else:
            yield (True if is_writable else None), descriptor
        finally:
            os.close(descriptor)

    def _open_lock(self) -> tuple[int, bool]:
        """Open the lock file; return its descriptor and whether the file, and so the folder, can be written."""
        flags = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            try:
                return os.open(self.lock_file, os.O_RDWR | flags), True
            except OSError as error:
                if error.errno not in _READ_ONLY:
                    raise
                return os.open(self.lock_file, os.O_RDONLY | flags), False
        except OSError as error:
            raise self.missing(self.lock_file, error) from error

    def agent_log_tail(self, lines: int = 5) -> str:
        """Return the last lines of the agent's log."""
        from scriptmode_local._store.host_logs import last_lines

        return last_lines(self.agent_log, lines, 1000)

    def unreadable(self, path: Path, cause: object) -> UnreadableJobError:
        """Return the error for a file of the job that cannot be read, with the cause."""
        owner = file_owner.find_other_owner(self.path)
        # An agent that has begun has recorded itself; the lock alone may be that of another reader.
        is_running = self.has_agent() and not self.never_had_processes
        return UnreadableJobError(self.name, path, cause, is_running=is_running, owner=owner)

    def has_agent(self) -> bool:
        """Return whether an agent holds the job's lock; False where that is unknown."""
        with suppress(OSError):
            descriptor = os.open(self.lock_file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            try:
                return not try_lock(descriptor, fcntl.LOCK_SH)
            finally:
                os.close(descriptor)
        return False

    def _read(self, file: str, parse: Callable[[Any, str], _Read]) -> _Read:
        path = self.path / file
        try:
            return parse(regular_files.read_json(path), self.name)
        except OSError as error:
            raise self.missing(path, error) from error
        except (TypeError, ValueError) as error:
            raise self.unreadable(path, error) from error

    def missing(self, path: Path, error: OSError) -> JobNotFoundError | UnreadableJobError:
        """Return the error for a file that cannot be opened: a job whose folder is gone was deleted."""
        if isinstance(error, (FileNotFoundError, NotADirectoryError)) and not self.path.is_dir():
            return self.gone()
        return self.unreadable(path, error)

    def gone(self) -> JobNotFoundError:
        """Return the error for a job that another process deleted."""
        return JobNotFoundError(
            f"there is no training job {self.name!r} any more: its folder {self.path} was removed",
            advice="look at those that are left: scriptmode list",
        )


class JobStore:
    """All jobs of one data directory, and the folders that they share."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.jobs = data_dir / "jobs"
        self.sources = data_dir / "sources"
        self.ports = data_dir / "ports"
        #: Where killed processes may have left drafts.
        self._draft_directories = (data_dir, self.jobs, self.sources, data_dir / TUNING, data_dir / "queue")
        #: Cache of the summaries of ended jobs.
        self.ended_jobs = data_dir / "ended-jobs.json"

    @contextmanager
    def create(self, job: Job, state: JobState) -> Iterator[tuple[JobFolder, int]]:
        """Write a new job's folder, completely or not at all; yield it with the descriptor of its lock, which is held.

        The agent inherits the lock, so no process ever finds it free while the job starts.
        """
        folder = JobFolder(self.jobs / state.name)
        with ExitStack() as stack:
            with translated_errors(self.data_dir, state.name):
                entries = ChangedDirectories()
                for directory in (self.data_dir, self.jobs):
                    entries.make_directory(directory, mode=0o700)
                (self.data_dir / MARK).touch()
                with new_folder(folder.path, job_exists_error(state.name)) as path:
                    lock = stack.enter_context(new_lock(JobFolder(path).lock_file))
                    heartbeat.write_heartbeat(lock)
                    _write_draft(JobFolder(path), job, state)
                    entries.sync()
            yield folder, lock

    def remove_orphans(self) -> None:
        """Remove the drafts that killed processes left."""
        for directory in self._draft_directories:
            drafts.remove_orphans(directory)

    def find(self, name: str) -> JobFolder:
        """Return a job's folder, whatever its files hold; raise `JobNotFoundError`."""
        if not self.exists(name):
            advice = f"it is a tuning job: in Python, Tuner.attach({name!r}); its training jobs are '{name}-...'"
            if not has_folder(self.data_dir / TUNING, name):
                advice = _suggest_job(name, self.names() - {name})
            raise JobNotFoundError(f"no training job named {name!r} in {self.jobs}", advice=advice)
        return JobFolder(self.jobs / name)

    def exists(self, name: str) -> bool:
        """Return whether there is a folder of a job of that name."""
        return has_folder(self.jobs, name)

    def names(self) -> set[str]:
        """Return every job's name."""
        try:
            return {entry for entry in os.listdir(self.jobs) if entry[0] != "."}  # noqa: PTH208 - thousands
        except FileNotFoundError:
            return set()
        except OSError as error:
            what = f"the data directory {self.data_dir} cannot be read: {error.strerror or error}"
            raise DataError(what, advice=f"name another one in the environment variable {DATA_DIR_VARIABLE}") from error

    def folder(self, name: str) -> JobFolder:
        """Return the folder of a job that is known to exist."""
        return JobFolder(self.jobs / name)

    def version(self) -> tuple[int, ...] | None:
        """Return what changes whenever a job is created or deleted; None right after that, and without jobs."""
        with suppress(OSError):
            descriptor = os.open(self.jobs, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                return regular_files.settled_version(descriptor)
            finally:
                os.close(descriptor)
        return None

    def versions(self, names: Iterable[str]) -> Iterator[tuple[str, list[int]]]:
        """Yield each job's name with its version: numbers that change whenever its state or request is written.

        They are inode and modification time of both files, zeros where one is missing. Other folders are skipped.
        """
        try:
            jobs = os.open(self.jobs, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            for name in names:
                try:
                    # For thousands of jobs a Python function for each file would take longer than the system calls.
                    state = os.stat(f"{name}/state.json", dir_fd=jobs)
                    job = os.stat(f"{name}/job.json", dir_fd=jobs)
                    version: list[int] | None = [state.st_ino, state.st_mtime_ns, job.st_ino, job.st_mtime_ns]
                except OSError:
                    version = [0, 0, 0, 0] if _JOB_NAME.fullmatch(name) and has_folder(self.jobs, name) else None
                if version:
                    yield name, version
        finally:
            os.close(jobs)


@contextmanager
def new_folder(target: Path, exists_error: JobExistsError) -> Iterator[Path]:
    """Yield a new directory that gets its name durably at the end; raise ``exists_error`` if there is one by then."""
    with drafts.new_directory(target.parent) as path:
        yield path
        try:
            path.rename(target)
        except OSError as error:
            raise exists_error from error
    sync_directory(target.parent)


@contextmanager
def translated_errors(data_dir: Path, name: str) -> Iterator[None]:
    """Raise `DataError` where a data directory cannot be written, `RequestError` for a record that is not readable."""
    try:
        yield
    except OSError as error:
        from scriptmode_local._system import full_disk

        if full_disk.is_full(error):
            raise full_disk.full_disk_error(error, data_dir) from error
        raise unwritable_error(data_dir, error) from error
    except (TypeError, ValueError) as error:
        what = f"job {name!r} cannot be recorded, because its record could not be read again: {error}"
        raise RequestError(what, "correct that value") from error


def _write_draft(draft: JobFolder, job: Job, state: JobState) -> None:
    """Write the files of a new job durably, and without drafts of their own, because the folder is one."""
    draft.log("host").parent.mkdir()
    hosts = {"types": [group.instance_type for group in job.request.resources.host_groups], "engine": job.engine}
    contents = {
        "hosts.json": regular_files.render_json(hosts, job_record.parse_hosts, state.name),
        # The request itself was parsed from what it is here.
        "job.json": regular_files.render_json(job.to_json(), job_record.validate_job_record, state.name),
        "state.json": regular_files.render_json(state.to_json(), _parse_state, state.name),
    }
    for name, content in contents.items():
        (draft.path / name).touch(0o600)
        (draft.path / name).write_bytes(content)
    draft.reserve.allocate()
    # So that the agent can open it later, on a full disk too.
    draft.agent_log.touch()
    # For all at once a file system writes its journal once.
    run_together(partial(sync_directory, draft.path), *(partial(sync_file, draft.path / name) for name in contents))


def _parse_state(content: Any, name: str) -> JobState:
    state = states.state_from_json(content)
    if state.name != name:
        raise ValueError(f"it is of the job {state.name!r}")
    return state


def _parse_record(content: Any, _: str) -> dict[str, str]:
    shapes.validate_shape(content, {"*": str}, "")
    return dict(content)


def _parse_processes(content: Any) -> dict[str, ProcessIdentity]:
    from scriptmode_runtime._processes.proc import ProcessIdentity

    shapes.validate_shape(content, shapes.PROCESSES, "")
    return {name: ProcessIdentity(**identity) for name, identity in content.items()}


def job_exists_error(name: str) -> JobExistsError:
    """Return the error for the name of a job that exists."""
    what = f"there is a training job named {name!r} already"
    return JobExistsError(what, argument="job_name", advice="use another name")


def has_folder(parent: Path, name: str) -> bool:
    """Return whether a directory has a directory of that name, which is not hidden; False for any other text."""
    return bool(name) and name[0] != "." and "/" not in name and os.path.isdir(parent / name)  # noqa: PTH112 - long names


def _suggest_job(name: str, known: set[str]) -> str:
    if not known:
        return "the data directory has no jobs"
    if (last := name.rpartition("/")[2]) in known:
        return f"its name is {last!r}"
    # difflib's time for thousands of names would be noticed.
    near = did_you_mean(name, known, most=0) if len(known) <= 1000 else ""  # noqa: PLR2004
    return near or "scriptmode list shows the jobs of this machine"
