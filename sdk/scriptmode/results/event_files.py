"""Collect a job's event files (``tf.summary``) in one directory of this machine for TensorBoard.

While a job runs here, its hosts' files are copied as they grow: the hosts' directories are removed with the job, and
TensorBoard would lose what it shows. After a job has ended, here or elsewhere, its artifacts are downloaded.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlparse

from scriptmode.core.platforms.base import Platform
from scriptmode.core.spec.job_description import JobDescription
from scriptmode.errors import DataAccessError, DataError
from scriptmode.results.artifacts import download_cached, output_uri
from scriptmode_runtime import contract
from scriptmode_runtime.files import beneath

#: Part of the name of every event file (TensorFlow's EventsWriter; other programs' writers follow it).
_MARK = "tfevents"
#: Names of runs, and the directories of a host that they are in.
_AREAS = {
    "data": contract.OUTPUT_DATA_DIR,
    "intermediate": contract.OUTPUT_INTERMEDIATE_DIR,
    # The default of CreateTrainingJob's TensorBoardOutputConfig.LocalPath.
    "tensorboard": f"{contract.OUTPUT_DIR}/tensorboard",
    "model": contract.MODEL_DIR,
    "checkpoints": contract.CHECKPOINTS_DIR,
}
#: Hyperparameters that name a log directory; others, such as data_dir, may name directories of millions of files.
_LOGGED_TO = frozenset(
    {"job_dir", "model_dir", "log_dir", "logdir", "output_dir", "summary_dir", "checkpoint_dir", "tensorboard_dir"}
)
_PIECE = 1024 * 1024


class EventFiles:
    """Copies of a job's event files in ``folder``, which the caller owns; each `gather` copies new data."""

    def __init__(self, platform: Platform, name: str, folder: Path) -> None:
        self._platform = platform
        self._name = name
        self.folder = folder
        #: The copies by area and path within it, one for each host with such a file, the first host first.
        self._copies: dict[str, list[Path]] = {}
        self._links: set[Path] = set()

    def gather(self) -> bool:
        """Copy new data of event files; return whether it was all: the job had ended before."""
        description = self._description()
        has_ended = description.has_ended
        self._link_folders(description)
        for host, base in self._platform.host_folders(self._name).items():
            for area, inside in _AREAS.items():
                self._copy_all(base, area, inside, host)
        if has_ended:
            for area, folder in self._artifacts(description):
                self._copy_all(folder, area)
        return has_ended

    def _description(self) -> JobDescription:
        return self._platform.describe(self._name)

    def found(self) -> bool:
        """Return whether there is an event file so far."""
        return bool(self._links or self._copies)

    def check_found(self) -> None:
        """Raise `DataError`, with what to do about it, where no event file is there yet."""
        if self.found():
            return
        status = self._description().status
        if status.has_ended:
            raise DataError(
                f"training job {self._name} is {status} and left no event files in its output, model or checkpoints",
                advice="have the script write tf.summary to a directory in $SM_OUTPUT_DATA_DIR",
            )
        raise DataError(
            f"training job {self._name} is {status} and has written no event files yet where this machine reads them",
            advice="call again once it has, on Amazon SageMaker when the job ended",
        )

    def _link_folders(self, description: JobDescription) -> None:
        """Link the directories of this machine that hyperparameters name, such as job-dir: they outlive the job."""
        for key, folder in _named_folders(description):
            link = self.folder / key
            if link not in self._links and any(True for _ in _event_files(folder)):
                link.symlink_to(folder, target_is_directory=True)
                self._links.add(link)

    def _artifacts(self, description: JobDescription) -> Iterator[tuple[str, Path]]:
        """Download the artifacts that are known to have event files, else one after the other until one has."""
        for area, uri in _artifact_uris(description):
            known = {"data", *(inside.partition("/")[0] for inside in self._copies)}
            if self.found() and area not in known:
                continue
            try:
                yield area, download_cached(self._platform, description, area, uri)
            except DataAccessError:
                raise
            except DataError:
                # It does not exist: a job may have no such artifact.
                continue

    def _copy_all(self, root: Path, area: str, below: str = "", host: str = "") -> None:
        for name, file in _event_files(root, below):
            inside = f"{area}/{name}"
            copies = self._copies.setdefault(inside, [])
            target = self.folder / host / inside
            if host and target not in copies:
                copies.append(target)
            elif not host:
                # Of hosts with the same path an artifact has the first one's.
                target = copies[0] if copies else target
            _append(file, target)


def _event_files(root: Path, below: str = "") -> Iterator[tuple[str, BinaryIO]]:
    """Yield the names and contents of the event files in ``below`` of a directory, in order, without deleted ones.

    Links are not followed: those of a container mean nothing on this machine.
    """
    with suppress(OSError), beneath.Directory(root) as base, base.below(below) as directory:
        entries = directory.walk(failed=lambda *_: None)
        names = [entry.path for entry in entries if _MARK in entry.path and stat.S_ISREG(entry.status.st_mode)]
        for name in names:
            if _MARK in name.rpartition("/")[2]:
                with suppress(FileNotFoundError), os.fdopen(directory.open_file(name), "rb") as file:
                    yield name, file


def _append(file: BinaryIO, target: Path) -> None:
    """Append the data that a growing file has and its copy has not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("ab") as copy:
        file.seek(copy.tell())
        while piece := file.read(_PIECE):
            copy.write(piece)


def _named_folders(description: JobDescription) -> Iterator[tuple[str, Path]]:
    for key, text in description.job.hyperparameters.items():
        value = contract.decode(text)
        if not isinstance(value, str) or key.replace("-", "_") not in _LOGGED_TO:
            continue
        path = unquote(urlparse(value).path) if value.startswith("file://") else value
        is_hosts = path == contract.DEFAULT_BASE_DIR or path.startswith(contract.DEFAULT_BASE_DIR + "/")
        if path.startswith("/") and not is_hosts and Path(path).is_dir():
            yield key, Path(path)


def _artifact_uris(description: JobDescription) -> Iterator[tuple[str, str]]:
    """Yield the URIs of a job's artifacts, those most likely to have event files first."""
    job = description.job
    board = (job.monitoring.tensorboard or {}).get("S3OutputPath")
    if board:
        # The Debugger's documentation: below the path, a directory of the job.
        yield "tensorboard", f"{board.rstrip('/')}/{job.name}/tensorboard-output"
    yield "data", output_uri(job)
    if description.model_uri:
        yield "model", description.model_uri
    if job.output.checkpoint_uri:
        yield "checkpoints", job.output.checkpoint_uri
