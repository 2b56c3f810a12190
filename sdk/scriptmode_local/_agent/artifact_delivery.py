"""What a job delivers at its end: its model and other output, its last checkpoints, and notes of what is lost."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scriptmode.errors import DataError
from scriptmode_local._data import file_uris
from scriptmode_local._outputs import packed_artifacts
from scriptmode_local._system import full_disk
from scriptmode_runtime import contract
from scriptmode_runtime._files import directory_tree

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode_local._opt_ml.opt_ml import Sandbox
    from scriptmode_local._outputs.checkpoints import CheckpointSync
    from scriptmode_local._store.job_store import JobFolder

#: The reason and the text of an event for each loss.
Losses = list[tuple[str, str]]
#: How programs name the place of their model.
_PLACE = re.compile(rb"SM_MODEL_DIR|model[_-]dir|/opt/ml/model")
_PROGRAMS = (".py", ".sh", ".ipynb")
#: Files in which programs save models: TensorFlow and Keras, converters of their models, and NumPy.
_MODELS = (".keras", ".h5", ".hdf5", ".index", ".pb", ".tflite", ".onnx", ".npz")
#: Entries of the working directory that are looked at, bytes of a program, and names that are shown.
_MOST_ENTRIES, _MOST_BYTES, _MOST_NAMES = 10_000, 1024 * 1024, 3


class Delivery(NamedTuple):
    """The delivery of one job; its methods block, so they run in a forked task."""

    folder: JobFolder
    request: JobRequest
    sandboxes: Sequence[Sandbox]
    checkpoints: CheckpointSync | None
    #: The data directory, which names the disk of the job's directory in messages.
    disk: Path
    #: Writes a line to the log that the user reads.
    log: Callable[[str], None]

    @property
    def has_model(self) -> bool:
        """Whether a host left a model."""
        return not packed_artifacts.is_model_empty(self.sandboxes)

    def deliver(self, *, with_model: bool, expects_model: bool) -> tuple[str, Losses]:
        """Deliver the artifacts and the last checkpoints; return the model's URI, "" without one, and the losses.

        With ``expects_model`` the log of a job without a model says so. Raises `DataError` and ``OSError``.
        """
        if expects_model and not self.has_model:
            text = _describe_missing_model(self.request, self.sandboxes[0])
            if text:
                self.log(text)
        losses = Losses()
        with full_disk.translate_full_disk_errors(self.disk):
            uri = packed_artifacts.publish_artifacts(
                self.request, self.sandboxes, self.folder.output, with_model=with_model, say=self._note_in(losses)
            )
            if self.checkpoints and with_model:
                self.checkpoints.finish(self._note_in(losses))
        # A job that failed delivers its output also where its checkpoints cannot be copied.
        return uri, losses if with_model else losses + self.finish_checkpoints()

    def restore_checkpoints(self) -> None:
        """Copy the checkpoints of an earlier job to every host; raise `PlatformError` or ``OSError``."""
        if self.checkpoints:
            with full_disk.translate_full_disk_errors(self.disk):
                self.checkpoints.restore()

    def finish_checkpoints(self) -> Losses:
        """Copy the last checkpoints of a job that did not complete, if it has any; return the losses."""
        losses = Losses()
        try:
            if self.checkpoints:
                self.checkpoints.finish(self._note_in(losses))
        except (DataError, OSError) as error:
            self.log(f"checkpoints were not copied: {error}")
            losses.append(("CheckpointsNotCopied", f"the last checkpoints were not copied: {error}"))
        return losses

    def _note_in(self, losses: Losses) -> Callable[[str], None]:
        def note(text: str) -> None:
            losses.append(("OutputLeftOut", text))
            self.log(text)

        return note


def _describe_missing_model(job: JobRequest, sandbox: Sandbox) -> str:
    """Return a line for the log of a completed job; "" where nothing suggests that the script meant to save a model.

    ``sandbox`` is the first host's. The line has nothing but where to save for a source that names a place for its
    model, and for an image with a program of its own.
    """
    paths = list(islice(_working_files(sandbox), _MOST_ENTRIES))
    models = sorted((path for path in paths if path.endswith(_MODELS)), key=lambda path: (path.count("/"), path))
    if not models and paths and not any(_names_place(sandbox, path) for path in paths if path.endswith(_PROGRAMS)):
        return ""
    is_own = sandbox.root == contract.DEFAULT_BASE_DIR
    place = f"{sandbox.root}/{contract.MODEL_DIR}" if is_own else "the directory that it names"
    parts = [f"the script saved no files in SM_MODEL_DIR, so model.tar.gz is empty; save to {place}"]
    if models:
        names = ", ".join(map(repr, models[:_MOST_NAMES])) + (", ..." if len(models) > _MOST_NAMES else "")
        parts.append(f"its working directory, which is not kept, has {names}")
    uri = job.model_dir
    if file_uris.is_file(uri) and any(names for _, _, names in os.walk(file_uris.file_path(uri))):
        parts.append(f"model_dir, {job.model_dir}, has files")
    return "; ".join(parts)


def _working_files(sandbox: Sandbox) -> Iterator[str]:
    with suppress(OSError), sandbox.tree(contract.CODE_DIR) as directory:
        for entry in directory_tree.walk(directory, failed=lambda *_: None):
            if not entry.is_directory:
                yield entry.path


def _names_place(sandbox: Sandbox, path: str) -> bool:
    try:
        with sandbox.open_file(f"{contract.CODE_DIR}/{path}") as file:
            return bool(_PLACE.search(file.read(_MOST_BYTES)))
    except OSError:
        return False
