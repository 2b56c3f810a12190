"""A case: what the platform puts on one host before it starts ``train``."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from fakes.host_folders import write_files

#: In any text of a case: the folder that holds the host's ``ml`` and whatever else the case has.
FOLDER = "<folder>"
CODE = f"{FOLDER}/ml/code"
RECORDER = Path(__file__).parent / "inside" / "record.py"
SCRIPT = {"train.py": RECORDER.read_text()}
#: What a shell script does to be recorded.
SHELL = '"$PYTHON" "$RECORDER" "$0" "$@"\n'


def only_host(name="algo-1", **members):
    return {"current_host": name, "hosts": [name], **members}


@dataclass(frozen=True)
class Case:
    """Hyperparameters are texts as the platform's file has them; ``prepare`` gets the folder last."""

    id: str
    hyperparameters: dict[str, Any] = field(default_factory=dict)
    resources: dict[str, Any] = field(default_factory=only_host)
    channels: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=lambda: SCRIPT)
    prepare: Callable[[Path], object] | None = None
    #: "" leaves the hyperparameter out.
    program: str = "train.py"
    #: The exit code that the script itself ends with, as a shell tells it.
    ends: int = 0
    #: Processors the launcher may use; None: all there are.
    cpus: int | None = None

    def write(self, folder):
        """Write it as the platform does; the folder is new."""
        config = folder / "ml" / "input" / "config"
        for part in (config, folder / "ml" / "code", folder / "ml" / "output", folder / "home"):
            part.mkdir(parents=True)
        program = {"sagemaker_program": json.dumps(self.program)} if self.program else {}
        documents = {
            "hyperparameters": {**program, **self.hyperparameters},
            "inputdataconfig": self.channels,
            "resourceconfig": self.resources,
        }
        for name, document in documents.items():
            (config / f"{name}.json").write_text(json.dumps(document).replace(FOLDER, str(folder)))
        write_files(folder / "ml" / "code", {name: within(text, folder) for name, text in self.code.items()})
        if self.prepare:
            self.prepare(folder)


def within(text, folder):
    return text.replace(FOLDER, str(folder))


def encoded(**values):
    return {key: json.dumps(value) for key, value in values.items()}
