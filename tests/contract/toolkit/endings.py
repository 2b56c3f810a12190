"""How a job ends: exit codes, failure files, what the platform did not write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contract.toolkit.case import Case

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = "ml/input/config"


def earlier_failure(folder: Path) -> None:
    (folder / "ml/output/failure").write_text("of an earlier run")


def without(name: str) -> Case:
    return Case(f"platform: no {name}", prepare=lambda folder: (folder / CONFIG / name).unlink())


def broken(name: str) -> Case:
    return Case(f"platform: broken {name}", prepare=lambda folder: (folder / CONFIG / name).write_text("{broken"))


CASES = [
    Case("end: well"),
    *(Case(f"end: exit code {code}", variables={"END_WITH": str(code)}, ends=code) for code in (1, 3, 255)),
    Case("end: an exception", code={"train.py": "raise ValueError('bad')\n"}, ends=1),
    Case("end: killed", code={"train.py": "import os\nos.kill(os.getpid(), 9)\n"}, ends=137),
    Case("end: ends itself", code={"train.py": "import os\nos.kill(os.getpid(), 15)\n"}, ends=143),
    Case("end: badly, with its own failure file", variables={"END_WITH": "4", "OWN_FAILURE": "my own words"}, ends=4),
    Case("end: well, with its own failure file", variables={"OWN_FAILURE": "my own words"}),
    Case("end: well, with an earlier failure file", prepare=earlier_failure),
    Case("end: badly, with an earlier failure file", prepare=earlier_failure, variables={"END_WITH": "4"}, ends=4),
    without("resourceconfig.json"),
    without("hyperparameters.json"),
    without("inputdataconfig.json"),
    broken("hyperparameters.json"),
    broken("resourceconfig.json"),
]  # fmt: skip
