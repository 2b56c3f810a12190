"""The user's source: its download, its requirements and its command."""

from __future__ import annotations

import os

from scriptmode_runtime import contract
from scriptmode_runtime._environment import TrainingEnvironment, keras
from scriptmode_runtime._launch import aws_programs
from scriptmode_runtime._launch.variables import program_arguments, script_variables
from scriptmode_runtime._requirements import OVERLAY_DIR, PIP
from scriptmode_runtime._values.errors import UserCodeError
from scriptmode_runtime.plan import Command, ProcessSpec

_FILE = "file://"
_SHELL = ".sh"
_SHOWN_NAMES = 8
#: A directory for ``PYTHONPATH``: modules of AWS's images, where they are not installed.
_FALLBACK = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fallback")


def fetch(environment: TrainingEnvironment) -> ProcessSpec | None:
    """Copy or unpack the source into the code directory; for an ``s3://`` source return the process that does it."""
    source = _source(environment)
    if source.startswith(aws_programs.S3):
        return aws_programs.process(environment, "source", "source", environment.base_dir, source)
    if source:
        path = source.removeprefix(_FILE)
        if path != source and "%" in path and not os.path.exists(path):
            from urllib.parse import unquote

            path = unquote(path)
        _copy_source(path, environment)
    return None


def install(environment: TrainingEnvironment) -> ProcessSpec | None:
    """Validate the program; return the process that installs the source's requirements, or None."""
    path = _existing_program(environment)
    if not _is_python(environment) and not os.access(path, os.X_OK):
        _make_executable(path, environment.program, needed=not _is_shell(environment))
    wanted, code = _requirements(environment), environment.path(contract.CODE_DIR)
    if not wanted:
        return None
    words: tuple[str, ...] = ("-c", PIP, "install", "--disable-pip-version-check", "--no-input")
    cwd = code
    if _uses_overlay(environment):
        words = ("-m", "scriptmode_runtime._requirements.overlay", environment.path(OVERLAY_DIR), code)
        cwd = environment.path(contract.OUTPUT_DIR)
    if repository := environment.inherited.get("CA_REPOSITORY_ARN"):
        words = ("-m", aws_programs.__name__, "install", repository, cwd, *words)
        cwd = environment.path(contract.OUTPUT_DIR)
    return ProcessSpec("requirements", (environment.python, *words, *wanted), {"PYTHONUNBUFFERED": "1"}, cwd)


def command(environment: TrainingEnvironment) -> Command:
    """Return the program's command by its name and directory: package, script, shell script or executable."""
    code = environment.path(contract.CODE_DIR)
    python = environment.python
    if _requirements(environment) and _uses_overlay(environment):
        python = os.path.join(environment.path(OVERLAY_DIR), "bin", "python")
    program = environment.program
    start: tuple[str, ...] = (f"./{program}",)
    if _is_module(environment):
        start = (python, "-m", _module(program))
    elif _is_python(environment):
        start = (python, *start) if program.startswith("-") else (python, program)
    elif _is_shell(environment):
        start = ("/bin/sh", *start)
    inherited = environment.inherited
    env = script_variables(environment)
    env["PATH"] = os.pathsep.join(filter(None, (os.path.dirname(python), inherited.get("PATH", os.defpath))))
    # The preview of a host does not know where the runtime is there.
    fallback = _FALLBACK if environment.source is None else ""
    env["PYTHONPATH"] = os.pathsep.join(filter(None, (code, inherited.get("PYTHONPATH"), fallback)))
    env["PYTHONUNBUFFERED"] = "1"
    task_env = {contract.LEGACY_KERAS_VARIABLE: "1"} if keras.find_legacy_keras(environment) else {}
    return Command((*start, *program_arguments(environment)), env, code, python, task_env)


def _uses_overlay(environment: TrainingEnvironment) -> bool:
    """Return whether requirements are installed into an overlay: by the platform's choice, or without write access."""
    if environment.cluster.isolate_requirements:
        return True
    if environment.source is not None:  # a container on another machine, where root may change the packages
        return False
    import sysconfig

    return not os.access(sysconfig.get_path("purelib"), os.W_OK)


def _source(environment: TrainingEnvironment) -> str:
    source = str(environment.framework_parameters.get(contract.SUBMIT_DIRECTORY) or "")
    return "" if source.rstrip("/") == environment.path(contract.CODE_DIR) else source


def _copy_source(source: str, environment: TrainingEnvironment) -> None:
    from scriptmode_runtime._files.archive import source_limits, unpack

    code = environment.path(contract.CODE_DIR)
    if os.path.isfile(source) and os.path.basename(source) == environment.program:
        import shutil

        # The program itself instead of an archive: the toolkit accepts that too.
        try:
            os.makedirs(code, exist_ok=True)
            shutil.copy2(source, code)
        except OSError as error:
            raise UserCodeError(f"the source cannot be copied: {error}; free space, or make it readable") from error
    else:
        unpack(source, code, limits=source_limits(os.environ))


def _program_path(environment: TrainingEnvironment) -> str:
    program = environment.program
    if not program:
        raise UserCodeError(f"hyperparameter {contract.PROGRAM} is missing: it names the entry point")
    code = os.path.normpath(environment.path(contract.CODE_DIR))
    path = os.path.normpath(os.path.join(code, program))
    # A script may be a link in the image; a command is made executable, which must only change files of the source.
    if os.path.commonpath([code, path]) != code or (not _is_python(environment) and _leads_out(code, path)):
        raise UserCodeError(f"the entry point {program!r} lies outside the source; name a file inside it")
    return path


def _leads_out(code: str, path: str) -> bool:
    """Return whether links lead from a path of the code directory to somewhere else."""
    from scriptmode_runtime._files import beneath

    try:
        with beneath.Directory(code, seen_as=code) as directory:
            directory.stat(os.path.relpath(path, code))
    except OSError as error:
        return isinstance(error, beneath.EscapeError)
    return False


def _requirements(environment: TrainingEnvironment) -> tuple[str, ...]:
    """Return pip's arguments for the source: its requirements, and the source itself where it is a package."""
    code = environment.path(contract.CODE_DIR)
    name = str(environment.framework_parameters.get(contract.REQUIREMENTS_FILE) or "requirements.txt")
    wanted = ("-r", os.path.join(code, name)) if _has(environment, name) else ()
    return (*wanted, code) if _is_module(environment) else wanted


def _is_python(environment: TrainingEnvironment) -> bool:
    return environment.program.endswith(".py") or _is_module(environment)


def _is_shell(environment: TrainingEnvironment) -> bool:
    """Return whether the program is a shell script without an interpreter line, which /bin/sh runs."""
    # One that is still missing may have such a line.
    return environment.program.endswith(_SHELL) and _text(environment, environment.program, 2) not in (None, "#!")


def _make_executable(path: str, program: str, *, needed: bool) -> None:
    try:
        os.chmod(path, os.stat(path).st_mode | 0o111)  # noqa: S103 - the user of this host runs it
    except OSError as error:
        if not needed:
            return
        raise UserCodeError(
            f"the entry point {program!r} may not be executed, and cannot be made so: {error.strerror or error}; "
            "chmod +x it in the source, or name its interpreter: .py, or .sh without a first line #!"
        ) from error


def _is_module(environment: TrainingEnvironment) -> bool:
    """Return whether the program is started by its module's name: in a package, unless it is a shell script."""
    # Without these tables pyproject.toml only has settings of tools, and the source is not a package.
    lines = (_text(environment, "pyproject.toml") or "").splitlines()
    is_package = _has(environment, "setup.py") or any(line.strip() in ("[project]", "[build-system]") for line in lines)
    return is_package and not environment.program.endswith(_SHELL)


def _module(program: str) -> str:
    return program.removesuffix(".py").replace("/", ".")


def _has(environment: TrainingEnvironment, name: str) -> bool:
    """Return whether the source has a file of that name."""
    if environment.source is not None:
        return name in environment.source
    return os.path.isfile(os.path.join(environment.path(contract.CODE_DIR), name))


def _text(environment: TrainingEnvironment, name: str, size: int | None = None) -> str | None:
    """Return the first ``size`` characters of a source file, or all of it; None where it cannot be read."""
    if environment.source is not None:
        text = environment.source.get(name)
        return text if text is None else text[:size]
    path = os.path.join(environment.path(contract.CODE_DIR), name)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(-1 if size is None else size)
    except OSError:
        return None


def _existing_program(environment: TrainingEnvironment) -> str:
    code = environment.path(contract.CODE_DIR)
    path = _program_path(environment)
    is_named = _is_module(environment) and all(map(str.isidentifier, _module(environment.program).split(".")))
    # A module may be in a directory that its package names, such as src.
    if not is_named and not os.path.isfile(path):
        if not _source(environment) and not (os.path.isdir(code) and os.listdir(code)):
            raise UserCodeError(
                f"there is no source: the hyperparameter {contract.SUBMIT_DIRECTORY} is missing, and {code} is empty; "
                f"set it to the s3:// URI of the archive with the entry point {environment.program!r}"
            )
        raise UserCodeError(
            f"the entry point {environment.program!r} is not in the source: {code} holds {_names(code)}; "
            f"name a file of the source directory ({contract.PROGRAM})"
        )
    return path


def check(environment: TrainingEnvironment) -> None:
    """Raise `UserCodeError` for a program that cannot exist, without changes: the source may not be downloaded yet."""
    _program_path(environment)
    code = environment.path(contract.CODE_DIR)
    if environment.source is None and not _source(environment) and os.path.isdir(code) and os.listdir(code):
        _existing_program(environment)


def _names(folder: str) -> str:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        names = []
    shown = ", ".join(map(repr, names[:_SHOWN_NAMES]))
    return shown + (", ..." if len(names) > _SHOWN_NAMES else "") or "nothing"
