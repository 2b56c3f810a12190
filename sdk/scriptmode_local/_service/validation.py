"""Validation of a request: by the service's model, and for features that hosts of this machine lack."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode._core.request import service_model
from scriptmode._core.request.fields import PLAIN_ARGUMENTS
from scriptmode._core.request.render import as_fields
from scriptmode._core.spec.hosts import instance_kind
from scriptmode._core.spec.inputs import Channel, FileSystemInput, OtherInput, TrainingInput
from scriptmode._core.spec.job_request import ABSENT, JobRequest
from scriptmode._core.spec.names import SERVER_TAGS
from scriptmode._core.text.messages import Problem, did_you_mean, did_you_mean_path
from scriptmode.errors import DataAccessError, DataError, DataNotFoundError
from scriptmode_local._data import file_uris
from scriptmode_local._hosts.engine import find_engine
from scriptmode_runtime import contract
from scriptmode_runtime.contract import CHECKPOINTS_DIR, DEFAULT_BASE_DIR, MODEL_DIR_PARAMETER

if TYPE_CHECKING:
    from scriptmode._core.spec.training_job import InstanceGroup, Resources

#: Fields that may hold a file:// URI here, which the service does not accept ...
FILE_URI_FIELDS = frozenset(
    {"InputDataConfig.DataSource.S3DataSource.S3Uri", "OutputDataConfig.S3OutputPath", "CheckpointConfig.S3Uri"}
)
#: ... and fields that may hold an instance type of this machine.
INSTANCE_TYPE_FIELDS = frozenset({"ResourceConfig.InstanceType", "ResourceConfig.InstanceGroups.InstanceType"})
#: Fields that hosts of this machine do not use: any value of the right type will do, and one line says so.
_UNUSED_FIELDS = frozenset(
    {
        "RoleArn", "OutputDataConfig.KmsKeyId", "ResourceConfig.VolumeKmsKeyId", "ResourceConfig.VolumeSizeInGB",
        "ResourceConfig.KeepAlivePeriodInSeconds", "VpcConfig.Subnets", "VpcConfig.SecurityGroupIds", *PLAIN_ARGUMENTS,
    }
)  # fmt: skip

NOT_YET = "is not supported by the local platform yet"
_LEAVE_OUT = "leave it out"


class ValidatedRequest(NamedTuple):
    """A request without problems, and the service's JSON of it."""

    request: JobRequest
    fields: Mapping[str, Any]


def validate_request(request: JobRequest | Mapping[str, Any]) -> ValidatedRequest:
    """Return a request that has no problems; raise `RequestError` listing every problem of another."""
    fields = as_fields(request)
    if violations := [*service_model.violations(_without_server_tags(fields), is_extension)]:
        from scriptmode._core.request.violation_texts import raise_violations

        raise_violations("the request is not valid", violations)
    # The rules rely on a request of the right shape.
    job = request
    if not isinstance(job, JobRequest):
        from scriptmode._core.request.parse import parse_request

        job = parse_request(job)
    checks = (
        _algorithm(job),
        _instances(job.resources),
        find_engine(job.resources.host_kind).problems(job),
        (problem._replace(argument="inputs") for problem in _channels(job)),
        _locations(job),
        _metrics(job),
    )
    service_model.raise_problems("the local platform cannot run this job", list(chain.from_iterable(checks)))
    return ValidatedRequest(job, fields)


def _without_server_tags(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request without the tags that do not count among those of the client."""
    if not isinstance(tags := fields.get("Tags"), list):
        return fields
    keys = (tag.get("Key") if isinstance(tag, dict) else None for tag in tags)
    return {**fields, "Tags": [tag for tag, key in zip(tags, keys) if not str(key).startswith(SERVER_TAGS)]}


def check_paths(job: JobRequest, own: Path, folders: Mapping[str, str]) -> None:
    """Raise `DataError` for a local path that cannot be used, `CredentialsError` for an S3 URI without credentials.

    ``folders`` are those of file systems by ID. Creates the output folders on this machine, which is the only way to
    find out whether that is possible, except for ``own``, which the job store creates.
    """
    given = {"output_path": job.output.path, "checkpoint_s3_uri": job.output.checkpoint_uri}
    outputs = {argument: uri for argument, uri in given.items() if uri}
    check_inputs(job, folders)
    if file_uris.is_file(source := job.source_uri or "") and not file_uris.exists(file_uris.file_path(source)):
        what = f"source_dir {source} does not exist, or not any more"
        raise DataNotFoundError(what, "correct it, or start a new job with your files")
    if job.s3_uris:
        from scriptmode_local._inputs import s3_locations

        s3_locations.check_s3(job, outputs)
    for argument, uri in outputs.items():
        if file_uris.is_file(uri) and file_uris.file_path(uri) != own:
            _make_writable(argument, file_uris.file_path(uri))


def check_inputs(job: JobRequest, folders: Mapping[str, str]) -> None:
    """Raise `DataError` for a channel on this machine that cannot be read; S3 is not accessed.

    ``folders`` are those of file systems by ID. Has no side effect.
    """
    for channel in job.channels:
        _check_input(channel, folders)


def _check_input(channel: Channel, folders: Mapping[str, str]) -> None:
    source = channel.source
    try:
        if isinstance(source, FileSystemInput):
            from scriptmode_local._system import file_systems

            file_systems.find_folder(source, folders)
        elif isinstance(source, TrainingInput) and file_uris.is_file(source.s3_data):
            from scriptmode_local._data.channel_source import ChannelSource
            from scriptmode_local._data.file_store import FileStore
            from scriptmode_local._data.object_store import require_data

            path = file_uris.file_path(source.s3_data)
            if not file_uris.exists(path):
                step = did_you_mean_path(path) or "correct the path or create it"
                raise DataNotFoundError(f"there is no file or directory {str(path)!r}", step)
            if not os.access(path, os.R_OK | os.X_OK if path.is_dir() else os.R_OK):
                what = f"{str(path)!r} cannot be read: access denied"
                raise DataAccessError(what, f"make it readable: chmod -R +rX {path}")
            require_data(ChannelSource(channel.name, "File", source.s3_data_type, source.s3_data), FileStore())
    except DataError as error:
        what = f"channel {channel.name!r}: {error.message}"
        raise type(error)(what, argument="inputs", advice=error.advice) from error


def _make_writable(argument: str, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Permissions are not enough to know: root may write to /proc, where no file can be created.
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        what = f"{argument} {str(folder)!r} cannot be written: {error.strerror or error}"
        raise DataError(what, argument=argument, advice="name another folder") from error


def is_extension(field: str, value: object) -> bool:
    """Return whether a value of a field, without indices, is one of this machine that the service does not accept."""
    if field in FILE_URI_FIELDS:
        return isinstance(value, str) and file_uris.is_file(value)
    if field in _UNUSED_FIELDS:
        return True
    # What is neither a type of the service nor one that runs here is a problem of `_instances`.
    return field in INSTANCE_TYPE_FIELDS and isinstance(value, str) and not value.startswith("ml.")


def _algorithm(job: JobRequest) -> Iterator[Problem]:
    # Fields without an attribute, and those that the attributes render although the request does not have them.
    others = {correction.path: correction.given for correction in job.corrections}
    registry = "training_repository_access_mode"
    if others.get(("AlgorithmSpecification",)) is ABSENT:
        yield Problem("the request lacks 'AlgorithmSpecification'")
    for field, is_given, argument in (
        ("AlgorithmName", ("AlgorithmSpecification", "AlgorithmName") in others, ""),
        ("TrainingImageConfig", registry in job.plain_fields, registry),
    ):
        if is_given:
            yield Problem(f"AlgorithmSpecification.{field} {NOT_YET}", _LEAVE_OUT, argument)
    if ("ServerlessJobConfig",) in others:
        yield Problem(f"ServerlessJobConfig {NOT_YET}", _LEAVE_OUT)
    for problem in filter(None, (contract.hyperparameter_problem(*item) for item in job.hyperparameters.items())):
        yield Problem(problem, "correct it", "hyperparameters")


def _instances(resources: Resources) -> Iterator[Problem]:
    groups = resources.instance_groups
    if (resources.instance_type is not None or resources.instance_count is not None) == bool(groups):
        yield Problem("ResourceConfig must have either InstanceType and InstanceCount, or InstanceGroups")
        return
    parts: list[tuple[str, InstanceGroup | Resources]] = [("ResourceConfig", resources)]
    if groups:
        parts = [(f"ResourceConfig.InstanceGroups[{index}]", group) for index, group in enumerate(groups)]
    for path, part in parts:
        if (part.instance_count or 0) < 1:
            yield Problem(f"{path}.InstanceCount is {part.instance_count!r}", "give at least 1", "instance_count")
        if part.instance_type is None or not instance_kind(part.instance_type).has_local_jobs:
            from scriptmode._core.spec import instance_types

            runs = " and ".join(map(repr, instance_types.local_forms()))
            advice = f"the local platform runs {runs}; another type needs the package of its engine"
            yield Problem(f"{path}.InstanceType is {part.instance_type!r}", advice, "instance_type")
    kinds = {instance_kind(group.instance_type): group.instance_type.partition(":")[0] for group in groups}
    for kind, instance_type in kinds.items():
        if len(kinds) > 1 and kind.runs_scripts:
            what = f"ResourceConfig.InstanceGroups: {instance_type!r} cannot be combined with others"
            yield Problem(what, "use one kind", "instance_groups")
    names = [group.instance_group_name for group in groups]
    yield from _repeated("instance group", names, "instance_groups")


def _channels(job: JobRequest) -> Iterator[Problem]:
    names = [channel.name for channel in job.channels]
    groups = {group.instance_group_name for group in job.resources.instance_groups}
    given = {correction.path: correction.given for correction in job.corrections}
    yield from _repeated("channel", names, "inputs")
    for index, channel in enumerate(job.channels):
        name, source = f"channel {channel.name!r}", channel.source
        if channel.name in (".", ".."):
            yield Problem(f"{name}: a channel name is the name of a folder", "choose another one")
        if isinstance(source, OtherInput):
            held = list(filter(None, source.kind.split(", ")))
            yield Problem(f"{name}: DataSource holds {held}", "give either S3DataSource or FileSystemDataSource")
        elif isinstance(source, FileSystemInput):
            # The mode is not one of the source's attributes, because it does not change how the data is mounted.
            mode = given.get(("InputDataConfig", index, "InputMode"), job.algorithm.input_mode)
            if mode != "File":
                what = f"{name}: a file system is mounted, not streamed"
                yield Problem(what, f"give the channel InputMode 'File', not {mode!r}")
        else:
            mode = job.input_mode(channel)
            # The FIFOs of a channel have its name and the number of an epoch.
            fifos = re.compile(re.escape(channel.name) + r"_\d+")
            for taken in filter(fifos.fullmatch, names if mode == "Pipe" else ()):
                what = f"channel {taken!r}: channel {channel.name!r} is in Pipe mode and has FIFOs of such names"
                yield Problem(what, "rename one")
            for problem in _s3_data_source(source, mode, groups):
                yield problem._replace(text=f"{name}: {problem.text}")


def _s3_data_source(source: TrainingInput, mode: str, groups: set[str]) -> Iterator[Problem]:
    for field, value in (("CompressionType", source.compression), ("RecordWrapperType", source.record_wrapping)):
        if mode != "Pipe" and (value or "None") != "None":
            yield Problem(f"{field} {value!r} is valid only in Pipe mode", f"leave it out in {mode} mode")
    data_type = source.s3_data_type
    if data_type not in ("S3Prefix", "ManifestFile", "AugmentedManifestFile"):
        yield Problem(f"S3DataType {data_type!r} {NOT_YET}", "use 'S3Prefix'")
    if data_type == "AugmentedManifestFile" and mode != "Pipe":
        yield Problem(f"S3DataType {data_type!r} is valid only in Pipe mode, not in {mode} mode")
    if (data_type == "AugmentedManifestFile") != bool(source.attribute_names):
        what = "AttributeNames needs S3DataType 'AugmentedManifestFile', and vice versa"
        yield Problem(what, f"it is {data_type!r}")
    if source.hub_access_config is not None:
        yield Problem(f"HubAccessConfig {NOT_YET}", _LEAVE_OUT)
    for group in source.instance_groups:
        if group not in groups:
            yield Problem(f"there is no instance group {group!r}", did_you_mean(group, groups) or _LEAVE_OUT)
    yield from _uri("S3Uri", source.s3_data, "inputs")


def _locations(job: JobRequest) -> Iterator[Problem]:
    if file_uris.is_file(job.model_dir):
        yield from _uri(f"HyperParameters[{MODEL_DIR_PARAMETER!r}]", job.model_dir, "model_dir")
    yield from _uri("OutputDataConfig.S3OutputPath", job.output.path or "", "output_path")
    if job.monitoring.tensorboard is not None:
        advice = "leave it out and write the events below SM_OUTPUT_DATA_DIR"
        yield Problem(f"TensorBoardOutputConfig {NOT_YET}", advice, "tensorboard_output_config")
    if job.output.checkpoint_uri is None:
        return
    yield from _uri("CheckpointConfig.S3Uri", job.output.checkpoint_uri, "checkpoint_s3_uri")
    local = job.output.checkpoint_local_path or f"{DEFAULT_BASE_DIR}/{CHECKPOINTS_DIR}"
    if ".." in local.split("/") or not local.startswith(DEFAULT_BASE_DIR + "/"):
        advice = f"give a path below {DEFAULT_BASE_DIR}/, without '..'"
        yield Problem(f"CheckpointConfig.LocalPath is {local!r}", advice, "checkpoint_local_path")


def _metrics(job: JobRequest) -> Iterator[Problem]:
    if not job.algorithm.metric_definitions:
        return
    from scriptmode._core.spec.metric_definitions import metric_problem

    # The service uses regular expressions of Java, which only the service can validate.
    yield from filter(None, (metric_problem(name, regex) for name, regex in job.algorithm.metric_definitions))


def _uri(field: str, uri: str, argument: str) -> Iterator[Problem]:
    if file_uris.is_file(uri):
        try:
            file_uris.file_path(uri)
        except DataError as error:
            yield Problem(f"{field}: {error}", argument=argument)
    elif not uri.startswith("s3://"):
        yield Problem(f"{field} is {uri!r}", "the local platform reads s3:// and file:// URIs", argument)


def _repeated(what: str, names: list[str], argument: str) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(f"the {what} name {name!r} occurs {count} times", "names must differ", argument)
