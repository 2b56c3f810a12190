"""The difference between a request and an earlier job. Pure, except for queries to the platform."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Callable

from scriptmode._core.request import rerun
from scriptmode._core.request.service_model import DESCRIBED_DEFAULTS
from scriptmode._core.spec.training_job import CODE_CHANNEL
from scriptmode.errors import PlatformError
from scriptmode.planning import _archive_contents as archive_contents
from scriptmode.planning._archive_contents import ArchiveContents
from scriptmode.planning._plan_parts import Change, Difference
from scriptmode_runtime import contract
from scriptmode_runtime._report.redaction import Redaction

#: Fields that identify the members of a list.
_NAMES = ("ChannelName", "InstanceGroupName", "Name", "Key", "RuleConfigurationName")
#: Values that the service uses, and describes, for fields that a request does not set.
_DEFAULTS: dict[str, tuple[Any, ...]] = {
    **{name: (value,) for name, value in DESCRIBED_DEFAULTS.items()},
    "S3DataDistributionType": ("FullyReplicated",),
    "CompressionType": ("None", "GZIP"),
    "RecordWrapperType": ("None",),
}
#: Locations of the source archive: its files are compared instead.
_ARCHIVE_FIELDS = (
    f"HyperParameters.{contract.SUBMIT_DIRECTORY}",
    f"InputDataConfig.{CODE_CHANNEL}.DataSource.S3DataSource.S3Uri",
)


def compare(
    job: Any, request: Mapping[str, Any], own: ArchiveContents | None
) -> tuple[Mapping[str, Any], Callable[[Redaction], Difference]]:
    """Compare a job, a `scriptmode.TrainingJob`, with a request and the contents of its archive.

    Returns the request that would start the job again under the new name, and a function that hides the secrets of the
    difference. Raises `PlatformError`.
    """
    description = job.platform.describe(job.name)
    # The request of a rerun: with the new name, and the URIs that contain it.
    change = rerun.RerunChanges(job_name=str(request["TrainingJobName"]))
    before = rerun.rerun_request(description.response, job.platform.tags(description), change)
    fields, files = changed_fields(before, request), _files(job, description.job.source_uri, own)

    def difference(hide: Redaction) -> Difference:
        old = hide.document({path: change.before for path, change in fields.items()})
        new = hide.document({path: change.after for path, change in fields.items()})
        return Difference(job.name, {path: Change(old[path], new[path]) for path in fields}, **files)

    return before, difference


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Change]:
    """Return the fields that differ between two requests by their paths, in the order of the requests."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    return {
        path: Change(old.get(path), new.get(path))
        for path in dict.fromkeys([*new, *old])
        if old.get(path) != new.get(path) and path not in _ARCHIVE_FIELDS
    }


def _files(job: Any, uri: str | None, own: ArchiveContents | None) -> dict[str, Any]:
    """Return which files of the source differ, or a note why that is unknown."""
    if uri is None and own is None:
        return {}
    if uri is None or own is None:
        return {"note": f"the source of {job.name if uri is None else 'this job'} is not known here: not compared"}
    try:
        theirs = archive_contents.fetch_archive(job.platform, uri)
    except PlatformError as error:
        return {"note": f"the source of {job.name} is not compared: {error}"}
    new, old = own.digests, theirs.digests
    return {
        "added": tuple(sorted(new.keys() - old.keys())),
        "removed": tuple(sorted(old.keys() - new.keys())),
        "changed": tuple(sorted(name for name in new.keys() & old.keys() if new[name] != old[name])),
    }


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _leaves(member, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and all(isinstance(member, dict) for member in value):
        for number, member in enumerate(value):
            key = next((key for key in _NAMES if key in member), None)
            rest = {name: field for name, field in member.items() if name != key}
            yield from _leaves(rest, f"{path}.{number if key is None else member[key]}")
    elif value not in _DEFAULTS.get(path.rpartition(".")[2], ()):
        yield path, value
