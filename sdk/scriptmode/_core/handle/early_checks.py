"""Checks of a job before it starts: a script that cannot be compiled is refused, other mistakes are warnings."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode._core.platforms.registry import Platform
from scriptmode._core.spec.hosts import LOCAL_ROLE
from scriptmode._core.spec.job_request import JobRequest
from scriptmode._core.spec.training_job import Resources
from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import SourceError
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode._core.source.source_archive import Source

_OURS, _THREADS = "SCRIPTMODE_", "TF_NUM_INTEROP_THREADS"
#: Arguments that pass to the request although the caller left them out.
_WITH_A_DEFAULT = {"enable_sagemaker_metrics"}


def check_job(platform: Platform, job: JobRequest, sent: tuple[Source, str] | None, *, jobs: int = 1) -> list[str]:
    """Return a sentence for each setting without an effect, and for what probably fails.

    ``sent`` is the source and its archive's URI, if the source is on this machine; ``jobs``: how many such jobs may run
    at once. Raises `SourceError` for a script that this interpreter cannot compile, where the hosts have the same one.
    """
    crowding = platform.describe_crowding(job, jobs)
    error = _syntax_error(sent[0].files[job.program]) if sent and job.program.endswith(".py") else ""
    kind = job.resources.host_kind
    runs_python = kind.runs_scripts and not (kind.runs_images and job.algorithm.image_uri)
    if error and runs_python and getattr(platform, "python", "") == sys.executable:
        what = f"entry_point {job.program!r} cannot be compiled by the hosts' Python, {sys.executable}"
        raise SourceError(f"{what}\n{error}", argument="entry_point")
    broken = f"{job.program} cannot be compiled by this Python {'{}.{}'.format(*sys.version_info)}:\n{error}"
    # Hosts without an image have the variables of this process, too.
    variables = {**(os.environ if runs_python else {}), **job.environment}
    threads = variables.get(_THREADS)
    servers = contract.enabled(job.parameter(contract.PARAMETER_SERVER_ENABLED))
    waits = f"{_THREADS}=1: parameter servers can wait for each other for ever; set at least 2, or leave it out"
    others = filter(None, [crowding, waits if servers and threads == "1" else "", broken if error else ""])
    return [*_unused_settings(job), *_wrong_settings(variables), *_likely_mistakes(job), *others]


def _likely_mistakes(job: JobRequest) -> Iterator[str]:
    """Yield a sentence for each setting with which the service starts a job that probably is not what was meant."""
    source = job.source_uri or ""
    if source.startswith("s3://") and not source.endswith((".tar.gz", ".tgz")):
        yield f"source_dir {source} does not end in .tar.gz: hosts unpack it as a tar archive compressed by gzip"
    if job.limits.use_spot_instances and not job.output.checkpoint_uri and not job.resources.host_kind.is_here:
        yield "use_spot_instances without checkpoint_s3_uri: a job that is interrupted starts from its beginning"


def _unused_settings(job: JobRequest) -> Iterator[str]:
    """Yield a sentence for each setting that was given and has no effect."""
    kind, image = job.resources.host_kind, job.algorithm.image_uri
    if image and not kind.runs_images:
        yield f"image_uri {image} is not used: the hosts are {kind.title}"
    if kind.has_local_jobs:
        role = (job.role or "").rpartition("/")[2]
        if role not in ("", LOCAL_ROLE):
            yield f"role {role} is not used: jobs of {kind.system} have the rights of the user who starts them"
        if job.resources.volume_size != Resources.volume_size:
            disks = "this machine's own disks" if kind.is_here else "their machines' own disks"
            yield f"volume_size {job.resources.volume_size} is not used: the hosts have {disks}"
        others = {
            # S3 encrypts the source archive with it.
            "output_kms_key": job.output.kms_key if not str(job.output.path).startswith("s3://") else None,
            "volume_kms_key": job.resources.volume_kms_key,
            "keep_alive_period_in_seconds": job.resources.keep_alive_period,
            "subnets": job.network.subnets,
        }
        given = {name for name, value in others.items() if value}
        for name in sorted(given | job.plain_fields.keys() - _WITH_A_DEFAULT):
            yield f"{name} is not used: it is for Amazon SageMaker's own hosts"
    for name in sorted(name for name in job.environment if name.startswith("SM_") and job.program):
        yield f"environment variable {name} may have no effect: the launcher sets the script's SM_*, as SM_MODEL_DIR"


def _wrong_settings(variables: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each misspelled setting of the launcher; raise `SpecError` for a value that it refuses."""
    ours = {name: value for name, value in variables.items() if name.startswith(_OURS)}
    if not ours:
        return
    from scriptmode._core.request.render import check_settings
    from scriptmode_runtime._values.settings import VARIABLES

    check_settings(ours, "os.environ")
    known = [name.removeprefix(_OURS) for name in VARIABLES]  # with it all are similar
    for name in sorted(ours.keys() - VARIABLES):
        if did_you_mean(name.removeprefix(_OURS), known, most=0):
            yield f"environment variable {name} is no setting of the launcher; {did_you_mean(name, VARIABLES, most=0)}"


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
