"""The command line that starts TensorBoard on a job's event files (``tf.summary``)."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

from scriptmode._core.platforms.registry import Platform
from scriptmode._core.spec.job_description import JobDescription
from scriptmode._core.spec.monitoring import monitoring_output
from scriptmode._results.artifacts import download_cached, output_uri
from scriptmode.errors import DataAccessError, DataError
from scriptmode_runtime import contract

#: Part of the name of every event file (TensorFlow's EventsWriter; other programs' writers follow it).
_MARK = "tfevents"
#: Hyperparameters that name a log directory; others, such as data_dir, may name directories of millions of files.
_LOGGED_TO = frozenset(
    {"job_dir", "model_dir", "log_dir", "logdir", "output_dir", "summary_dir", "checkpoint_dir", "tensorboard_dir"}
)
#: The directories of a host with event files; ``output`` has that of TensorBoardOutputConfig.
_AREAS = (contract.OUTPUT_DIR, contract.MODEL_DIR, contract.CHECKPOINTS_DIR)


def tensorboard_command(platform: Platform, name: str) -> str:
    """Return the command line that starts TensorBoard on the event files that a job has written so far.

    While a job runs on this machine its hosts' directories are named; of an ended job an artifact is downloaded.
    Raises `DataError` for a job without event files on this machine.
    """
    description = platform.describe(name)
    runs = {run: folder for run, folder in _folders(platform, description) if _has_event_files(folder)}
    if not runs and description.has_ended:
        runs = _artifact(platform, description)
    if not runs:
        when = "to a directory in $SM_OUTPUT_DATA_DIR" if description.has_ended else "and call again once it has"
        what = f"training job {name} is {description.status} and has no event files on this machine"
        raise DataError(what, advice=f"have the script write tf.summary {when}")
    spec = ",".join(f"{run}:{folder}" for run, folder in runs.items())
    option = ("--logdir", str(*runs.values())) if len(runs) == 1 else ("--logdir_spec", spec)
    return shlex.join((sys.executable, "-m", "tensorboard.main", *option))


def _folders(platform: Platform, description: JobDescription) -> Iterator[tuple[str, Path]]:
    """Yield the names of runs and their directories: those that hyperparameters name, and those of the hosts."""
    for key, text in description.job.hyperparameters.items():
        value = contract.decode(text)
        if not isinstance(value, str) or key.replace("-", "_") not in _LOGGED_TO:
            continue
        path = Path(unquote(urlparse(value).path) if value.startswith("file://") else value)
        if path.is_absolute() and Path(contract.DEFAULT_BASE_DIR) not in (path, *path.parents):
            yield key, path
    for host, base in platform.host_folders(description.name).items():
        for area in _AREAS:
            yield f"{host}/{area}", base / area


def _has_event_files(folder: Path) -> bool:
    return any(_MARK in file for _, _, files in os.walk(folder) for file in files)


def _artifact(platform: Platform, description: JobDescription) -> dict[str, Path]:
    """Download the artifacts, one after the other, until one has event files."""
    for area, uri in _artifact_uris(description):
        try:
            folder = download_cached(platform, description, area, uri)
        except DataAccessError:
            raise
        except DataError:
            continue  # a job may have no such artifact
        if _has_event_files(folder):
            return {area: folder}
    return {}


def _artifact_uris(description: JobDescription) -> Iterator[tuple[str, str]]:
    """Yield the URIs of a job's artifacts, those most likely to have event files first."""
    job = description.job
    if board := monitoring_output(description.response, "tensorboard"):
        yield "tensorboard", board
    yield "data", output_uri(job)
    if description.artifact_uri:
        yield "model", description.artifact_uri
    if job.output.checkpoint_uri:
        yield "checkpoints", job.output.checkpoint_uri
