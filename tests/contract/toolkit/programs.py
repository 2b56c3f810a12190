"""Every kind of entry point, every name of one, what is installed before it starts, and how a job ends."""

import zipfile

from contract.toolkit.case import FOLDER, RECORDER, SCRIPT, SHELL, Case, encoded

RECORD = RECORDER.read_text()
SETUP = "from setuptools import setup\nsetup(name='own', version='1', py_modules=['own'])\n"
SETUP_IN_SRC = SETUP.replace("py_modules", "package_dir={'': 'src'}, py_modules")
PROJECT = "[build-system]\nrequires = ['setuptools']\n[project]\nname = 'own'\nversion = '1'\n[tool.setuptools]\npy-modules = ['own']\n"
#: pip installs beside the case, from no index, with the setuptools that is there.
INSTALLED = {
    "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "false", "PIP_NO_COMPILE": "1", "PIP_TARGET": f"{FOLDER}/site",
    "PYTHONPATH": f"{FOLDER}/site",
}  # fmt: skip
WHEEL = "wanted-1-py3-none-any.whl"
REQUIREMENTS = {"requirements.txt": f"./parts/{WHEEL}\n"}
ARGUMENTS = encoded(epochs=2, text='it\'s a "b" $HOME', empty="")


def wheel(folder):
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


def script(name):
    return Case(f"program: {name!r}", ARGUMENTS, program=name, code={name: RECORD})


def package(name, program, code, *, brings=True):
    """A package; it brings its module beside its settings, or has it elsewhere."""
    code = {**code, **({"own.py": RECORD} if brings else {})}
    return Case(f"package: {name}", ARGUMENTS, program=program, code=code, variables=INSTALLED)


def outside(folder):
    (folder / "ml/code/link.py").symlink_to(RECORDER)


def command_outside(folder):
    (folder / "ml/code/link.sh").symlink_to("/bin/true")


KINDS = [
    script("train.py"), script("inner/train.py"), script("train.v2.py"), script("_+.-9/x-1.py"),
    Case("shell: named interpreter", ARGUMENTS, program="train.sh", code={"train.sh": f"#!/bin/bash\n{SHELL}"}),
    Case("shell: options of its interpreter", program="train.sh", code={"train.sh": f"#!/bin/sh -e\n{SHELL}false\nexit 0\n"}),
    Case("shell: no interpreter named", ARGUMENTS, program="train.sh", code={"train.sh": f'test -z "$BASH" || exit 7\n{SHELL}'}),
    Case("shell: beside a package", ARGUMENTS, program="train.sh", code={"train.sh": SHELL, "setup.py": "broken"}),
    Case("shell: ends badly", program="train.sh", code={"train.sh": f"{SHELL}exit 5\n"}, ends=5),
    Case("shell: interpreter that is not there", program="train.sh", code={"train.sh": "#!/no/such/shell\n"}),
    Case("executable", ARGUMENTS, program="tool", code={"tool": f"#!/bin/sh\n{SHELL}"}),
    Case("executable: no interpreter named", ARGUMENTS, program="tool", code={"tool": SHELL}),
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


CONFIG = "ml/input/config"


def earlier_failure(folder):
    (folder / "ml/output/failure").write_text("of an earlier run")


def without(name):
    return Case(f"platform: no {name}", prepare=lambda folder: (folder / CONFIG / name).unlink())


def broken(name):
    return Case(f"platform: broken {name}", prepare=lambda folder: (folder / CONFIG / name).write_text("{broken"))


ENDINGS = [
    Case("end: well"),
    Case("end: exit code 3", variables={"END_WITH": "3"}, ends=3),
    Case("end: an exception", code={"train.py": "raise ValueError('bad')\n"}, ends=1),
    Case("end: killed", code={"train.py": "import os\nos.kill(os.getpid(), 9)\n"}, ends=137),
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
CASES = [*KINDS, *REQUIRED, *NAMES, *ENDINGS]
