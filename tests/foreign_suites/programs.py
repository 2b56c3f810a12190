"""Programs of other projects, as training jobs on hosts of this machine, with the data of the notebooks."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.foreign_suites.sources import adapt

#: Replaces a data set that the programs download.
DATA = """
import numpy as np


def load_data(*_, **_named):
    def read(part):
        with np.load("{folder}/" + part + "/part-0.npz") as content:
            return content["x"], content["y"]

    return read("train"), read("eval")
"""
DATA_FOLDER = Path(__file__).parents[2] / "notebooks" / "data" / "fashion_mnist"
#: How programs name the data sets of Keras.
KERAS_DATA = (r"tf\.keras\.datasets\.(?:fashion_)?mnist(?=[.\s])", '__import__("keras_data")')


@dataclass(frozen=True)
class Program:
    """A program and what it prints when it has succeeded.

    Attributes:
        files: Texts by name; the first is the program.
        printed: A regular expression that a line of the job's log matches.
        adaptations: Regular expressions and what replaces them in every file. Each must match.
        job: Arguments of the estimator.
    """

    files: dict[str, str]
    printed: str
    adaptations: tuple[tuple[str, str], ...] = ()
    job: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> str:
        """Write the adapted files; return the name of the program."""
        folder.mkdir()
        texts = adapt(self.files, self.adaptations)
        for name, text in {**texts, "keras_data.py": DATA.format(folder=DATA_FOLDER)}.items():
            (folder / name).write_text(text, encoding="utf-8")
        return next(iter(texts))


def run(folder: Path, programs: dict[str, Program]) -> dict[str, str | None]:
    """Return the failure of each program, None of one that succeeded."""
    os.environ.update(SCRIPTMODE_DATA_DIR=str(folder / "data"), TF_CPP_MIN_LOG_LEVEL="2")
    return {name: _failure(folder / name, program) for name, program in programs.items()}


def _failure(folder: Path, program: Program) -> str | None:
    from scriptmode import Estimator, ScriptmodeError

    fixed = {"instance_count": 1, "instance_type": "local_process", "max_run": 900}
    try:
        names = {"entry_point": program.write(folder), "source_dir": str(folder)}
        job = Estimator(**names, **{**fixed, **program.job}).fit(logs=False)
    except (ScriptmodeError, ValueError) as error:
        return str(error)[:2000]
    lines = [event.message for event in job.logs()]
    if any(re.search(program.printed, line) for line in lines):
        return None
    return f"the log has no line {program.printed!r}; its last are {lines[-5:]}"
