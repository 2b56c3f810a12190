"""Creation of a plan from what an estimator would submit, and the content of its source. Stores nothing."""

from __future__ import annotations

import copy
import hashlib
import io
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from scriptmode._core.aws.instance_gpus import gpu_count
from scriptmode._core.platforms.registry import Platform
from scriptmode._core.request.render import render_request
from scriptmode._core.source.source_archive import Source
from scriptmode._core.spec.host_values import PlannedHost
from scriptmode._core.spec.job_request import JobRequest
from scriptmode.errors import DataError, PlatformError
from scriptmode.planning._host_plans import HostPlans
from scriptmode.planning._job_plan import Plan
from scriptmode.planning._plan_parts import SourcePlan
from scriptmode_runtime import contract

_FILE = "file://"
#: Number of bytes of a file that the runtime needs to find out how it is started.
_LONGEST_TEXT = 64 * 1024


def create_plan(platform: Platform, job: JobRequest, sent: tuple[Source, str] | None) -> Plan:
    """Create a plan of what `Estimator.fit` would send.

    ``sent`` is the source with its archive's URI. Raises `SpecError` with the runtime's message for what the hosts
    would refuse, and what the platform raises.
    """
    request, hosts = copy.deepcopy(render_request(job)), platform.planned_hosts(job)
    source, texts, note = _source(platform, job, sent)
    planned = HostPlans(job, hosts, texts)
    assumed = [*_unknown_gpus(job, hosts), note, *dict.fromkeys(host.limitation for host in hosts.values())]
    return Plan(
        request,
        planned,
        source,
        tuple(filter(None, assumed)),
        planned.hide.document(request),
        platform.planned_script(job),
    )


def _unknown_gpus(job: JobRequest, hosts: Mapping[str, PlannedHost]) -> Iterator[str]:
    """Yield a sentence for each instance type whose number of GPUs, which is that of a host's ranks, is unknown."""
    counts_gpus = contract.enabled(job.parameter(contract.MPI_ENABLED))
    if counts_gpus and contract.MPI_PROCESSES_PER_HOST not in job.hyperparameters:
        types = {host.instance_type for host in hosts.values() if not host.python and host.gpus is None}
        for name in sorted(types):
            if gpu_count(name) is None:
                yield f"the number of GPUs of {name} is unknown: planned as 0"


def _source(
    platform: Platform, job: JobRequest, sent: tuple[Source, str] | None
) -> tuple[SourcePlan | None, Mapping[str, str], str]:
    """Return the source, the texts that decide how it is started, and the reason why it was not opened."""
    if sent is not None:
        source, uri = sent
        return (*_read_archive(uri, source.data, job.program), "")
    stored = job.source_uri
    if stored is None:
        return None, {}, ""
    why = ""
    if stored.startswith(_FILE):
        try:
            return (*_fetch_archive(platform, stored, job.program), "")
        except PlatformError as error:
            why = f" ({error})"
    assumed = "assumed to have no requirements.txt and not to be a package"
    return SourcePlan(stored), {}, f"the source at {stored} is not opened: {assumed}{why}"


def _read_archive(uri: str, archive: bytes, program: str) -> tuple[SourcePlan, dict[str, str]]:
    """Return an archive, gzip-compressed or not, and the texts of ``program`` and of top-level files by their names.

    Raises `DataError` if it is not an archive.
    """
    sizes, texts = {}, {}
    try:
        for name, content in _regular_files(archive):
            sizes[name] = len(content)
            # What decides how the program is started is beside the directories, or the program itself.
            if name == program or "/" not in name:
                texts[name] = content[:_LONGEST_TEXT].decode("utf-8", "replace")
    except _archive_errors() as error:
        raise DataError(f"it is not a source archive: {error}", advice="pack it with tar and gzip") from error
    return SourcePlan(uri, sizes, len(archive), hashlib.sha256(archive).hexdigest()), texts


def _regular_files(archive: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in filter(tarfile.TarInfo.isreg, tar):
            if file := tar.extractfile(member):
                yield member.name.removeprefix("./"), file.read()


def _archive_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that reading a broken archive raises."""
    # Only imported once such an archive was read: some interpreters are built without lzma.
    lzma = sys.modules.get("lzma")
    own = () if lzma is None else (lzma.LZMAError,)
    return (tarfile.TarError, zlib.error, EOFError, OSError, OverflowError, ValueError, *own)


def _fetch_archive(platform: Platform, uri: str, program: str) -> tuple[SourcePlan, dict[str, str]]:
    """Download a stored archive and read it, as `_read_archive` does; raises `PlatformError`."""
    with tempfile.TemporaryDirectory(prefix="scriptmode-") as folder:
        files = platform.fetch(uri, Path(folder))
        if len(files) != 1:
            raise DataError(f"{uri} has {len(files)} files, expected one source archive", "give the URI of the archive")
        return _read_archive(uri, files[0].read_bytes(), program)
