"""Environments with the SageMaker SDK v2 and v3, and what v2 and scriptmode send for the calls of the matrix."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from references import SAGEMAKER_V2, SAGEMAKER_V3_CORE, environment
from serve.conftest import served  # noqa: F401 - the fixture

ROOT = Path(__file__).parents[2]
SOURCES = ("code/train.py", "code/train.sh", "code/inner/other.py", "library/part.py", "single.py")


@dataclass(frozen=True)
class InstalledSdk:
    """The interpreter of an environment with a SageMaker SDK."""

    python: Path

    def run(self, folder, *command, text=None, **variables):
        """Run a program that sees scriptmode and no AWS settings; return what its last line has as JSON."""
        settings = {
            "PATH": os.environ["PATH"], "HOME": str(folder),
            "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("tests", "sdk", "entrypoints")),
            "AWS_EC2_METADATA_DISABLED": "true", "SAGEMAKER_SUPPRESS_V2_WARNING": "1",
        }  # fmt: skip
        done = subprocess.run(
            [str(self.python), *map(str, command)],
            cwd=folder, env={**settings, **variables}, input=text, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def v2():
    return InstalledSdk(environment(SAGEMAKER_V2) / "python")


@pytest.fixture(scope="session")
def v3():
    """The SDK v3 without its packages for serving and pipelines."""
    return InstalledSdk(environment(SAGEMAKER_V3_CORE) / "python")


@pytest.fixture(scope="session")
def sent(v2, tmp_path_factory):
    """A folder with sources, and the requests that v2 and scriptmode make of it for every case of the matrix."""
    folder = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{name}\n")
    program = Path(__file__).with_name("v2_requests.py")
    # v2 sends collections in the order of a set.
    return folder, v2.run(folder, program, AWS_DEFAULT_REGION="us-east-1", PYTHONHASHSEED="0")
