"""The record of tuning jobs on disk: one directory for each.

``<data dir>/tuning/<tuning job>/``
  ``request.json``  the CreateHyperParameterTuningJob request and how its training jobs are run; written once
  ``state.json``    the status, and the training jobs with their hyperparameters and objectives; replaced as a whole
  ``agent.lock``    held (flock) by the agent while it lives
  ``stop``          exists once a stop was requested
  ``agent.log``     warnings and errors of the agent
  ``server/``       files of `scriptmode.serve`, which alone reads and writes them

The client that creates the tuning job writes everything once, before the directory gets its name by a rename. From
then on the agent, which inherits the lock, is the only writer, but for ``stop``. The agent records a training job
before it creates it, so that an agent that continues the tuning job finds it by its name.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.core.machine import drafts
from scriptmode.core.machine.data_dir import TUNING, make_private
from scriptmode.core.spec.service_values import ENDED, FAILED
from scriptmode.core.text.messages import did_you_mean
from scriptmode.data import regular_files
from scriptmode.data.durable import replace_file, sync_directory
from scriptmode.errors import DataError, JobExistsError, JobNotFoundError
from scriptmode.platforms.local.store import shapes
from scriptmode.platforms.local.store.job_store import has_folder, translated_errors
from scriptmode.platforms.local.system.directory_lock import above_streams, new_lock
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from collections.abc import Iterator

_TRIAL = {"name!": str, "tuned!": {"*": str}, "created!": object, "status!": str}
_STATE = {"status!": str, "created!": object, "modified!": object, "trials!": [_TRIAL]}
_RECORD = {
    "request!": {"HyperParameterTuningJobName!": str},
    "platform!": dict,
    "arn!": str,
    "training_arn!": str,
}


@dataclass
class Trial:
    """One training job of a tuning job. Times are seconds since the epoch; 0 is unknown."""

    name: str
    tuned: dict[str, str]
    #: 0 before it is created, which may be refused.
    created: float
    status: str = "InProgress"
    started: float = 0.0
    ended: float = 0.0
    failure: str = ""
    #: The last value of the objective, known once the training job has ended.
    objective: float | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the training job ended, in whatever way."""
        return self.status in ENDED

    @property
    def is_launched(self) -> bool:
        """Whether the training job was created."""
        return self.created > 0

    @property
    def objective_status(self) -> str:
        """ObjectiveStatus of the service: ``Succeeded``, ``Failed``, or ``Pending`` while the training job runs."""
        if not self.has_ended:
            return "Pending"
        return "Failed" if self.status == FAILED or self.objective is None else "Succeeded"


@dataclass
class TuningState:
    """The state of a tuning job. Times are seconds since the epoch."""

    created: float
    modified: float
    status: str = "InProgress"
    failure: str = ""
    ended: float = 0.0
    trials: list[Trial] = field(default_factory=list)

    @property
    def has_ended(self) -> bool:
        """Whether the tuning job ended, in whatever way."""
        return self.status in ENDED

    @property
    def launched(self) -> list[Trial]:
        """The training jobs that were created, which alone are listed and counted."""
        return [each for each in self.trials if each.is_launched]


@dataclass(frozen=True)
class TuningRecord:
    """What does not change after the creation of a tuning job.

    Attributes:
        request: The CreateHyperParameterTuningJob request.
        platform: The arguments of the `LocalPlatform` that runs the training jobs.
        arn: The ARN of the tuning job.
        training_arn: The beginning of the ARNs of its training jobs.
    """

    request: dict[str, Any]
    platform: dict[str, Any]
    arn: str
    training_arn: str


@dataclass(frozen=True)
class TuningFolder:
    """The directory of one tuning job."""

    path: Path

    @property
    def name(self) -> str:
        """The name of the tuning job."""
        return self.path.name

    @property
    def lock_file(self) -> Path:
        """The file whose lock the agent holds while it lives."""
        return self.path / "agent.lock"

    @property
    def agent_log(self) -> Path:
        """The log of the agent."""
        return self.path / "agent.log"

    def read_record(self) -> TuningRecord:
        """Return what was recorded at the creation; raise `DataError` where it is damaged."""
        return TuningRecord(**self._read("request.json", _RECORD))

    def read_state(self) -> TuningState:
        """Return the state; raise `DataError` where it is damaged."""
        content = self._read("state.json", _STATE)
        return TuningState(**{**content, "trials": [Trial(**each) for each in content["trials"]]})

    def _read(self, file: str, shape: Any) -> Any:
        path = self.path / file
        try:
            content = regular_files.read_json(path)
            shapes.validate_shape(content, shape, "")
        except (OSError, ValueError, TypeError) as error:
            if not self.path.is_dir():
                raise JobNotFoundError(
                    f"there is no tuning job {self.name!r} any more: {self.path} was removed", advice="start it again"
                ) from error
            cause = error.strerror if isinstance(error, OSError) and error.strerror else error
            step = f"remove its directory: rm -r '{self.path}'; its training jobs are not affected"
            raise DataError(f"tuning job {self.name!r} cannot be read: {path}: {cause}", advice=step) from error
        return content

    def write_state(self, state: TuningState) -> None:
        """Write the state; it is durable when this returns. Raises ``OSError``."""
        replace_file(self.path / "state.json", regular_files.render_json(asdict(state)), directory=True)

    def request_stop(self) -> None:
        """Create the file that requests a stop; raise `DataError` where the directory cannot be written."""
        try:
            (self.path / "stop").touch()
        except OSError as error:
            raise DataError(
                f"tuning job {self.name} cannot be asked to stop: {error}",
                advice="stop it as a user, or on a machine, that can write its directory",
            ) from error

    @property
    def is_stop_requested(self) -> bool:
        """Whether a stop was requested."""
        return (self.path / "stop").exists()

    @property
    def is_deleted(self) -> bool:
        """Whether the directory was removed."""
        return not (self.path / "state.json").exists()

    def remove(self) -> None:
        """Remove the directory, which has another name until it is empty; raise ``OSError``."""
        moved = Path(tempfile.mkdtemp(prefix=".removed-", dir=self.path.parent))
        beneath.remove_tree(self.path.rename(moved))

    @contextmanager
    def try_lock(self) -> Iterator[int | None]:
        """Try to lock the tuning job in place of its agent; yield the lock's descriptor, None if an agent holds it.

        Raises `DataError` where the lock cannot be opened.
        """
        try:
            descriptor = above_streams(os.open(self.lock_file, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
        except OSError as error:
            raise DataError(
                f"tuning job {self.name} cannot be continued: {error}",
                advice="call as a user who can write its directory",
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield descriptor
        finally:
            os.close(descriptor)


class TuningStore:
    """All tuning jobs of one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.folder = data_dir / TUNING

    @contextmanager
    def create(self, record: TuningRecord, state: TuningState) -> Iterator[tuple[TuningFolder, int]]:
        """Write a new tuning job, completely or not at all; yield it with the descriptor of its lock, which is held."""
        name = record.request["HyperParameterTuningJobName"]
        folder = TuningFolder(self.folder / name)
        with ExitStack() as stack:
            with translated_errors(self.data_dir, name):
                make_private(self.folder, self.data_dir)
                with drafts.new_directory(self.folder) as path:
                    draft = TuningFolder(path)
                    lock = stack.enter_context(new_lock(draft.lock_file))
                    replace_file(path / "request.json", regular_files.render_json(asdict(record)))
                    draft.write_state(state)
                    draft.agent_log.touch()
                    try:
                        path.rename(folder.path)
                    except OSError as error:
                        raise tuning_job_exists_error(name) from error
                sync_directory(self.folder)
            yield folder, lock

    def find(self, name: str) -> TuningFolder:
        """Return the directory of a tuning job; raise `JobNotFoundError`."""
        if not self.exists(name):
            raise JobNotFoundError(
                f"no tuning job named {name!r} in {self.folder}", advice=did_you_mean(name, self.names())
            )
        return TuningFolder(self.folder / name)

    def exists(self, name: str) -> bool:
        """Return whether there is a tuning job of that name."""
        return has_folder(self.folder, name)

    def names(self) -> list[str]:
        """Return the name of every tuning job."""
        try:
            return sorted(path.name for path in self.folder.iterdir() if path.name[0] != ".")
        except OSError:
            return []


def tuning_job_exists_error(name: str) -> JobExistsError:
    """Return the error for the name of a tuning job that exists."""
    step = f"use another name, or continue it: Tuner.attach({name!r})"
    return JobExistsError(f"there is a tuning job named {name!r} already", argument="job_name", advice=step)
