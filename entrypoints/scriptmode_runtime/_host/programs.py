"""The ``mpirun`` of this host, which a job may need. Checks files only and starts nothing."""

from __future__ import annotations

import os
from typing import NamedTuple

#: The daemon of Open MPI 4 is ``orted``, that of Open MPI 5 ``prted`` (their manuals).
_DAEMONS = {"prted": 5, "orted": 4}


class Mpirun(NamedTuple):
    """An ``mpirun`` and the major version of its Open MPI."""

    path: str
    major: int


def find_mpirun(python: str, search_path: str) -> Mpirun | None:
    """Find ``mpirun`` beside the interpreter, else on ``search_path`` (in the form of ``PATH``)."""
    for folder in (os.path.dirname(python), *search_path.split(os.pathsep)):
        path = os.path.join(folder, "mpirun")
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return Mpirun(path, _major(path))
    return None


def _major(path: str) -> int:
    real = os.path.realpath(path)
    if os.path.basename(real) == "orterun":
        return 4
    for folder in (os.path.dirname(path), os.path.dirname(real)):
        for daemon, major in _DAEMONS.items():
            if os.path.exists(os.path.join(folder, daemon)):
                return major
    return max(_DAEMONS.values())
