"""The user's source: where it comes from, what it needs, how it is started."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from scriptmode_runtime import contract
from scriptmode_runtime.errors import RuntimeFailure, UserCodeError
from scriptmode_runtime.plan import Command, ProcessSpec
from scriptmode_runtime.variables import arguments, variables

if TYPE_CHECKING:
    from scriptmode_runtime.environment import TrainingEnvironment

REQUIREMENTS = "requirements.txt"
#: This host's own packages, where the interpreter's own must stay as they are.
OVERLAY_DIR = "overlay"
#: pip run in the code folder, to which relative paths in requirements.txt belong; no module there stands in for pip's.
PIP = "import sys; sys.path = [p for p in sys.path if p]; import runpy; runpy.run_module('pip', None, '__main__', True)"
_S3 = "s3://"
_FILE = "file://"
_SHOWN_NAMES = 8


def fetch(environment: TrainingEnvironment) -> ProcessSpec | None:
    """Put the source into the code folder; for an ``s3://`` source give the process that will.

    boto3 is large and slow to import: it gets a process of its own, which this launcher outlives.
    """
    source = _source(environment)
    if source.startswith(_S3):
        argv = (environment.python, "-m", "scriptmode_runtime.user_code", environment.base_dir, source)
        return ProcessSpec("source", argv, {}, environment.path(contract.OUTPUT_DIR))
    if source:
        from scriptmode_runtime.archive import place

        place(_local_path(source), environment.path(contract.CODE_DIR))
    return None


def install(environment: TrainingEnvironment) -> ProcessSpec | None:
    """Check the program; give the process that installs what the source asks for, if it asks for anything."""
    code = environment.path(contract.CODE_DIR)
    path = _existing_program(environment)
    if not path.endswith(".py"):
        os.chmod(path, os.stat(path).st_mode | 0o111)  # noqa: S103 - to be run, by whoever runs this host
    wanted = _wanted(environment)
    if not wanted:
        return None
    if environment.cluster.isolate_requirements:
        overlay = environment.path(OVERLAY_DIR)
        argv = (environment.python, "-m", "scriptmode_runtime.overlay", overlay, code, *wanted)
        return ProcessSpec("requirements", argv, {"PYTHONUNBUFFERED": "1"}, environment.path(contract.OUTPUT_DIR))
    argv = (environment.python, "-c", PIP, "install", "--disable-pip-version-check", "--no-input", *wanted)
    return ProcessSpec("requirements", argv, {"PYTHONUNBUFFERED": "1"}, code)


def command(environment: TrainingEnvironment) -> Command:
    """Give how the program is started: package, script, shell script or executable, as its name and folder tell."""
    code = environment.path(contract.CODE_DIR)
    python = environment.python
    if environment.cluster.isolate_requirements and _wanted(environment):
        python = os.path.join(environment.path(OVERLAY_DIR), "bin", "python")
    program = environment.program
    file = f"./{program}" if program.startswith("-") else program
    start: tuple[str, ...]
    if program.endswith(".sh"):
        start = ("/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", file)
    elif _is_package(code):
        module = program.removesuffix(".py")
        start = (python, "-m", module.replace("/", "."))
    elif program.endswith(".py"):
        start = (python, file)
    else:
        start = (os.path.join(code, program),)
    inherited = environment.inherited
    env = variables(environment)
    env["PATH"] = os.pathsep.join(filter(None, (os.path.dirname(python), inherited.path)))
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (code, inherited.python_path)))
    env["PYTHONUNBUFFERED"] = "1"
    return Command((*start, *arguments(environment.hyperparameters)), env, code, python)


def _source(environment: TrainingEnvironment) -> str:
    source = str(environment.framework_parameters.get(contract.SUBMIT_DIRECTORY) or "")
    return "" if source.rstrip("/") == environment.path(contract.CODE_DIR) else source


def _local_path(source: str) -> str:
    path = source.removeprefix(_FILE)
    if source.startswith(_FILE) and "%" in path and not os.path.exists(path):
        from urllib.parse import unquote

        return unquote(path)
    return path


def _program_path(environment: TrainingEnvironment) -> str:
    code = os.path.realpath(environment.path(contract.CODE_DIR))
    program = environment.program
    if not program:
        raise UserCodeError(f"hyperparameter {contract.PROGRAM} is missing: it names the entry point")
    path = os.path.realpath(os.path.join(code, program))
    if os.path.commonpath([code, path]) != code:
        raise UserCodeError(f"the entry point {program!r} lies outside the source; name a file inside it")
    return path


def _wanted(environment: TrainingEnvironment) -> tuple[str, ...]:
    """Give pip's words for what the source asks for: its requirements, and itself where it is a package."""
    code = environment.path(contract.CODE_DIR)
    requirements = os.path.join(code, REQUIREMENTS)
    wanted = ("-r", requirements) if os.path.isfile(requirements) else ()
    return (*wanted, code) if _is_package(code) and not environment.program.endswith(".sh") else wanted


def _is_package(code: str) -> bool:
    if os.path.isfile(os.path.join(code, "setup.py")):
        return True
    try:
        with open(os.path.join(code, "pyproject.toml"), encoding="utf-8", errors="replace") as file:
            # Without a project it holds the settings of tools, and is no package.
            return any(line.strip() in ("[project]", "[build-system]") for line in file)
    except OSError:
        return False


def _existing_program(environment: TrainingEnvironment) -> str:
    code = environment.path(contract.CODE_DIR)
    path = _program_path(environment)
    if not os.path.isfile(path):
        raise UserCodeError(
            f"the entry point {environment.program!r} is not in the source: {code} holds {_names(code)}; "
            f"name a file of the source folder ({contract.PROGRAM})"
        )
    return path


def check(environment: TrainingEnvironment) -> None:
    """Raise `UserCodeError` for a program that cannot be there, changing nothing: the source may not be fetched yet."""
    _program_path(environment)
    code = environment.path(contract.CODE_DIR)
    if not _source(environment) and os.path.isdir(code) and os.listdir(code):
        _existing_program(environment)


def _names(folder: str) -> str:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        names = []
    shown = ", ".join(map(repr, names[:_SHOWN_NAMES]))
    return shown + (", ..." if len(names) > _SHOWN_NAMES else "") or "nothing"


def _download(uri: str, path: str) -> None:
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError as error:
        raise UserCodeError(f"{uri} cannot be fetched: boto3 is not installed in {sys.executable}") from error
    bucket, _, key = uri[len(_S3) :].partition("/")
    # Endpoint and region of S3 are boto3's own standard settings.
    try:
        boto3.client("s3").download_file(bucket, key, path)
    except (BotoCoreError, ClientError, OSError) as error:
        raise UserCodeError(
            f"{uri} cannot be fetched: {error}; check the address and that this host's role may read it"
        ) from error


def main(base_dir: str, uri: str) -> int:
    """Fetch an ``s3://`` archive into the code folder; the process that `fetch` gives."""
    import tempfile

    from scriptmode_runtime.archive import place

    try:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sourcedir.tar.gz")
            _download(uri, path)
            place(path, os.path.join(base_dir, contract.CODE_DIR))
    except RuntimeFailure as error:
        sys.stderr.write(f"scriptmode: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
