"""The Keras of a host's TensorFlow: Keras 3 from TensorFlow 2.16 on, or Keras 2 of the package tf-keras.

Keras 3 cannot ``fit`` a model on several workers or with parameter servers. Versions come from the directory names of
installed packages, because the import of `importlib.metadata` takes longer than the launcher itself.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from scriptmode_runtime import contract
from scriptmode_runtime._requirements import OVERLAY_DIR

if TYPE_CHECKING:
    from scriptmode_runtime._environment import TrainingEnvironment

_STRATEGIES = (contract.MULTI_WORKER_MIRRORED, contract.PARAMETER_SERVER)
#: Each version of tf-keras is for the TensorFlow of that version, and this one is the first with Keras 3.
_FIRST = (2, 16)


def find_legacy_keras(here: TrainingEnvironment) -> str:
    """Return the version of the tf-keras that the tasks of this job use in place of Keras 3, or "".

    It is "" if the job sets the variable itself, to whatever value.
    """
    if here.strategy not in _STRATEGIES or contract.LEGACY_KERAS_VARIABLE in here.inherited:
        return ""
    version = _find_version(here)
    return version if _release(version) >= _FIRST else ""


def _find_version(here: TrainingEnvironment) -> str:
    """Return the version of the installed tf-keras, or ""."""
    # A directory that cannot be listed, such as the zip file of the standard library, has no such name.
    for folder in filter(None, _folders(here)):
        for path in glob.iglob(os.path.join(glob.escape(folder), "tf_keras-*.dist-info")):
            return os.path.basename(path).removeprefix("tf_keras-").removesuffix(".dist-info")
    return ""


def _folders(here: TrainingEnvironment) -> Iterator[str]:
    """Yield the directories of packages: those of this host's requirements, then those of its interpreter."""
    overlay = glob.escape(here.path(OVERLAY_DIR))
    yield from glob.iglob(os.path.join(overlay, "lib", "python*", "site-packages"))
    yield from here.import_path


def _release(version: str) -> tuple[int, ...]:
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else ()
