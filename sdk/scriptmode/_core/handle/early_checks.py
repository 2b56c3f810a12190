"""Checks of a job before it starts: a script that cannot be compiled is refused, other mistakes are warnings."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING

from scriptmode._core.spec.unused_settings import unused_settings
from scriptmode.errors import SourceError
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from pathlib import Path

    from scriptmode._core.platforms.base import Platform
    from scriptmode._core.source.source_archive import Source
    from scriptmode._core.spec.job_request import JobRequest

_THREADS = "TF_NUM_INTEROP_THREADS"


def check_job(platform: Platform, job: JobRequest, sent: tuple[Source, str] | None, *, jobs: int = 1) -> list[str]:
    """Return a sentence for each setting without an effect, and for what probably fails.

    ``sent`` is the source and its archive's URI, if the source is on this machine; ``jobs``: how many such jobs may run
    at once. Raises `SourceError` for a script that this interpreter cannot compile, where the hosts have the same one.
    """
    # Of a platform of this machine.
    describe = getattr(platform, "describe_crowding", None)
    crowded = describe(job, jobs) if describe else ""
    error = _syntax_error(sent[0].path(job.program)) if sent and job.program.endswith(".py") else ""
    kind = job.resources.host_kind
    runs_python = kind.runs_scripts and not (kind.runs_images and job.algorithm.image_uri)
    if error and runs_python and getattr(platform, "python", "") == sys.executable:
        what = f"entry_point {job.program!r} cannot be compiled by the hosts' Python, {sys.executable}"
        raise SourceError(f"{what}\n{error}", argument="entry_point")
    broken = f"{job.program} cannot be compiled by this Python {'{}.{}'.format(*sys.version_info)}:\n{error}"
    # Hosts without an image have the variables of this process, too.
    threads = {**(os.environ if runs_python else {}), **job.environment}.get(_THREADS)
    servers = contract.enabled(job.parameter(contract.PARAMETER_SERVER_ENABLED))
    waits = f"{_THREADS}=1: parameter servers can wait for each other for ever; set at least 2, or leave it out"
    return [*unused_settings(job), *filter(None, [crowded, servers and threads == "1" and waits, error and broken])]


def _syntax_error(path: Path) -> str:
    """Return what Python shows of a script that it cannot compile, else ""."""
    try:
        with warnings.catch_warnings():
            # Such as an invalid escape sequence, which the script reports when it runs.
            warnings.simplefilter("ignore")
            compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        import traceback

        return "".join(traceback.format_exception_only(type(error), error)).rstrip()
    except (OSError, MemoryError, RecursionError):  # such as a file of a Git repository, which was packed before
        pass
    return ""
