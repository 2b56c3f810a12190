"""Where a script that left no model may have saved one, or meant to, by its source and its working directory."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from scriptmode_local._data import file_uris
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode_local._opt_ml.opt_ml import Sandbox

#: How programs name the place of their model.
_PLACE = re.compile(rb"SM_MODEL_DIR|model[_-]dir|/opt/ml/model")
_PROGRAMS = (".py", ".sh", ".ipynb")
#: Files in which TensorFlow and Keras save models and checkpoints, and those of converted models.
_MODELS = (".keras", ".h5", ".hdf5", ".index", ".pb", ".tflite", ".onnx")
#: Entries of the working directory that are looked at, bytes of a program, and names that are shown.
_MOST_ENTRIES, _MOST_BYTES, _MOST_NAMES = 10_000, 1024 * 1024, 3


def describe_missing_model(job: JobRequest, sandbox: Sandbox) -> str:
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
        for entry in directory.walk(failed=lambda *_: None):
            if not entry.is_directory:
                yield entry.path


def _names_place(sandbox: Sandbox, path: str) -> bool:
    try:
        with sandbox.open_file(f"{contract.CODE_DIR}/{path}") as file:
            return bool(_PLACE.search(file.read(_MOST_BYTES)))
    except OSError:
        return False
