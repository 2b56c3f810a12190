"""Every kind of entry point, every name of one, and what is installed before it starts."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from contract.toolkit.case import FOLDER, RECORDER, SCRIPT, SHELL, Case, encoded

if TYPE_CHECKING:
    from pathlib import Path

RECORD = RECORDER.read_text()
SETUP = "from setuptools import setup\nsetup(name='own', version='1', py_modules=['own'])\n"
SETUP_IN_SRC = SETUP.replace("py_modules", "package_dir={'': 'src'}, py_modules")
PROJECT = "[build-system]\nrequires = ['setuptools']\n[project]\nname = 'own'\nversion = '1'\n[tool.setuptools]\npy-modules = ['own']\n"
#: pip installs beside the case, from no index, with the setuptools that is there.
INSTALLED = {
    "PIP_NO_INDEX": "1",
    "PIP_NO_BUILD_ISOLATION": "false",
    "PIP_NO_COMPILE": "1",
    "PIP_TARGET": f"{FOLDER}/site",
    "PYTHONPATH": f"{FOLDER}/site",
}
WHEEL = "wanted-1-py3-none-any.whl"
REQUIREMENTS = {"requirements.txt": f"./parts/{WHEEL}\n"}
ARGUMENTS = encoded(epochs=2, text='it\'s a "b" $HOME', empty="")


def wheel(folder: Path) -> None:
    """Put a wheel of the module ``wanted`` into the source, smaller than any that is built."""
    parts = folder / "ml" / "code" / "parts"
    parts.mkdir()
    about = "wanted-1.dist-info"
    with zipfile.ZipFile(parts / WHEEL, "w") as archive:
        archive.writestr("wanted.py", "")
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: wanted\nVersion: 1\n")
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: us\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")


def script(name: str) -> Case:
    """A script of that name."""
    return Case(f"program: {name!r}", ARGUMENTS, program=name, code={name: RECORD})


def package(name: str, program: str, code: dict[str, str], *, brings: bool = True) -> Case:
    """A package; it brings its module beside its settings, or has it elsewhere."""
    code = {**code, **({"own.py": RECORD} if brings else {})}
    return Case(f"package: {name}", ARGUMENTS, program=program, code=code, variables=INSTALLED)


def outside(folder: Path) -> None:
    (folder / "ml/code/link.py").symlink_to(RECORDER)


def command_outside(folder: Path) -> None:
    (folder / "ml/code/link.sh").symlink_to("/bin/true")


KINDS = [
    script("train.py"),
    script("inner/train.py"),
    script("a/b/c/train.py"),
    script("train.v2.py"),
    script("train.py.py"),
    script("_+.-9/x-1.py"),
    Case("shell: named interpreter", ARGUMENTS, program="train.sh", code={"train.sh": f"#!/bin/bash\n{SHELL}"}),
    Case("shell: options of its interpreter", program="train.sh", code={"train.sh": f"#!/bin/sh -e\n{SHELL}false\nexit 0\n"}),
    Case("shell: another interpreter", ARGUMENTS, program="train.sh", code={"train.sh": f"#!/usr/bin/env bash\n{SHELL}"}),
    Case("shell: no interpreter named", ARGUMENTS, program="train.sh", code={"train.sh": f'test -z "$BASH" || exit 7\n{SHELL}'}),
    Case("shell: in a folder", ARGUMENTS, program="bin/train.sh", code={"bin/train.sh": SHELL}),
    Case("shell: beside a package", ARGUMENTS, program="train.sh", code={"train.sh": SHELL, "setup.py": "broken"}),
    Case("shell: ends badly", program="train.sh", code={"train.sh": f"{SHELL}exit 5\n"}, ends=5),
    Case("shell: interpreter that is not there", program="train.sh", code={"train.sh": "#!/no/such/shell\n"}),
    Case("executable", ARGUMENTS, program="tool", code={"tool": f"#!/bin/sh\n{SHELL}"}),
    Case("executable: in a folder", ARGUMENTS, program="bin/tool", code={"bin/tool": f"#!/bin/sh\n{SHELL}"}),
    Case("executable: no interpreter named", ARGUMENTS, program="tool", code={"tool": SHELL}),
    Case("executable: named like a module", ARGUMENTS, program="tool.pyc", code={"tool.pyc": f"#!/bin/sh\n{SHELL}"}),
    package("setup.py", "own.py", {"setup.py": SETUP}),
    package("module by its name, in a folder of its own", "own", {"setup.py": SETUP_IN_SRC, "src/own.py": RECORD}, brings=False),
    package("program in a folder", "inner/own.py", {"setup.py": SETUP, "inner/own.py": RECORD}),
    package("pyproject.toml", "own.py", {"pyproject.toml": PROJECT}),
    package("broken", "own.py", {"setup.py": "raise SystemExit(1)"}),
]  # fmt: skip
REQUIRED = [
    Case("requirements: of a script", ARGUMENTS, code={**SCRIPT, **REQUIREMENTS}, variables=INSTALLED, prepare=wheel),
    Case("requirements: not to be had", code={**SCRIPT, "requirements.txt": "no-such-package\n"}, variables=INSTALLED),
    Case("requirements: by CodeArtifact", code={**SCRIPT, **REQUIREMENTS}, variables={**INSTALLED, "CA_REPOSITORY_ARN": "repository"}, prepare=wheel),
    Case("requirements: of a shell script", program="train.sh", code={"train.sh": SHELL, **REQUIREMENTS}, variables=INSTALLED, prepare=wheel),
]  # fmt: skip
NAMES = [
    *map(script, (" it's \"me\".py", "größe.py", "$HOME;x.py", "-x.py", "a\nb.py", "./train.py", "a//b.py")),
    Case("program: outside the source", program="../../train.py"),
    Case("program: a path of the machine's", program="/bin/true"),
    Case("program: not there", program="absent.py"),
    Case("program: none", program=""),
    Case("program: a link that leads outside", program="link.py", prepare=outside),
    Case("program: a shell script that leads outside", program="link.sh", prepare=command_outside),
    Case("program: of the image", ARGUMENTS, program="", variables={"SAGEMAKER_PROGRAM": "train.py"}),
    Case("program: of the image and of the request", program="absent.py", variables={"SAGEMAKER_PROGRAM": "train.py"}),
    Case("program: not JSON", {"sagemaker_program": "train.py"}, program=""),
]  # fmt: skip
CASES = [*KINDS, *REQUIRED, *NAMES]
