"""The record of tuning jobs on disk: one directory for each.

``<data dir>/tuning/<tuning job>/``
  ``request.json``  the CreateHyperParameterTuningJob request and how its training jobs are run; written once
  ``state.json``    what changes of the service's description, and its training jobs; replaced as a whole
  ``agent.lock``    held (flock) by the agent while it lives
  ``stop``          exists once a stop was requested
  ``agent.log``     warnings and errors of the agent
  ``server/``       files of `scriptmode_serve`, which alone reads and writes them

The state has the service's fields; times are seconds since the epoch. ``TrainingJobs`` has a
HyperParameterTrainingJobSummary for each training job; one without a CreationTime was not created, or was refused.

The client that creates the tuning job writes everything once, before the directory gets its name by a rename. From
then on the agent, which inherits the lock, is the only writer, but for ``stop``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from scriptmode._core.machine.data_dir import TUNING, make_private
from scriptmode._core.request import tuning
from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import DataError, JobExistsError, JobNotFoundError
from scriptmode_local._agent.removal import rename_for_removal
from scriptmode_local._data import regular_files
from scriptmode_local._data.durable import replace_file
from scriptmode_local._store import shapes
from scriptmode_local._store.job_store import AgentFolder, has_folder, new_folder, translated_errors
from scriptmode_local._system.directory_lock import new_lock
from scriptmode_runtime._files import directory_tree

_JOB = {
    **dict.fromkeys(("TrainingJobName!", "TrainingJobStatus!", "ObjectiveStatus!"), str),
    **dict.fromkeys(("CreationTime", "TrainingStartTime", "TrainingEndTime"), shapes.is_time),
    "TunedHyperParameters!": {"*": str},
    tuning.FINAL_OBJECTIVE: {"Value!": shapes.is_number},
}
_STATE = {
    "HyperParameterTuningJobStatus!": str,
    **dict.fromkeys(("CreationTime!", "LastModifiedTime!", "HyperParameterTuningEndTime"), shapes.is_time),
    "TrainingJobs!": [_JOB],
}
_RECORD = {"request!": {"HyperParameterTuningJobName!": str}, "platform!": dict, "arn!": str}


class TuningRecord(NamedTuple):
    """What does not change after the creation of a tuning job.

    Attributes:
        request: The CreateHyperParameterTuningJob request.
        platform: The arguments of the `LocalPlatform` that runs the training jobs.
        arn: The ARN of the tuning job.
    """

    request: Mapping[str, Any]
    platform: Mapping[str, Any]
    arn: str


def starting_state(created: float) -> dict[str, object]:
    """Return the state of a new tuning job."""
    times = {"CreationTime": created, "LastModifiedTime": created}
    return {"HyperParameterTuningJobStatus": "InProgress", **times, "TrainingJobs": []}


class TuningFolder(AgentFolder):
    """The directory of one tuning job."""

    def read_record(self) -> TuningRecord:
        """Return what was recorded at the creation; raise `DataError` where it is damaged."""
        content = self._read("request.json", _RECORD)
        return TuningRecord(**{name: content[name] for name in ("request", "platform", "arn")})

    def read_state(self) -> dict[str, Any]:
        """Return the state; raise `DataError` where it is damaged."""
        return self._read("state.json", _STATE)

    def _read(self, file: str, shape: Any) -> dict[str, Any]:
        path = self.path / file
        try:
            content: dict[str, Any] = regular_files.read_json(path)
            shapes.validate_shape(content, shape, "")
        except (OSError, ValueError) as error:
            if not self.path.is_dir():
                raise JobNotFoundError(
                    f"there is no tuning job {self.name!r} any more: {self.path} was removed", advice="start it again"
                ) from error
            cause = error.strerror if isinstance(error, OSError) and error.strerror else error
            step = f"remove its directory: rm -r '{self.path}'; its training jobs are not affected"
            raise DataError(f"tuning job {self.name!r} cannot be read: {path}: {cause}", advice=step) from error
        return content

    def write_state(self, state: Mapping[str, Any]) -> None:
        """Write the state; it is durable when this returns. Raises ``OSError``."""
        replace_file(self.path / "state.json", regular_files.render_json(state), directory=True)

    def request_stop(self) -> None:
        """Create the file that requests a stop; raise `DataError` where the directory cannot be written."""
        with translated_errors(self.path, self.name):
            (self.path / "stop").touch()

    @property
    def is_stop_requested(self) -> bool:
        """Whether a stop was requested."""
        return (self.path / "stop").exists()

    @property
    def is_deleted(self) -> bool:
        """Whether the directory was removed."""
        return not (self.path / "state.json").exists()

    def remove(self) -> None:
        """Remove the directory, which has another name until it is empty; raise `DataError`."""
        with translated_errors(self.path, self.name):
            directory_tree.remove_tree(rename_for_removal(self.path).parent)


class TuningStore:
    """All tuning jobs of one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.folder = data_dir / TUNING

    @contextmanager
    def create(self, record: TuningRecord, state: Mapping[str, Any]) -> Iterator[tuple[TuningFolder, int]]:
        """Write a new tuning job, completely or not at all; yield it with the descriptor of its lock, which is held."""
        name = record.request["HyperParameterTuningJobName"]
        folder = TuningFolder(self.folder / name)
        with ExitStack() as stack:
            with translated_errors(self.data_dir, name):
                make_private(self.folder, self.data_dir)
                with new_folder(folder.path, tuning_job_exists_error(name)) as path:
                    draft = TuningFolder(path)
                    lock = stack.enter_context(new_lock(path / "agent.lock"))
                    replace_file(path / "request.json", regular_files.render_json(record._asdict()))
                    draft.write_state(state)
                    draft.agent_log.touch()
            yield folder, lock

    def find(self, name: str) -> TuningFolder:
        """Return the directory of a tuning job; raise `JobNotFoundError`."""
        if not has_folder(self.folder, name):
            raise JobNotFoundError(
                f"no tuning job named {name!r} in {self.folder}", advice=did_you_mean(name, self.names(), most=0)
            )
        return TuningFolder(self.folder / name)

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
