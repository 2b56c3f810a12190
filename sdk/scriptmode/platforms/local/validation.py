"""Validation of a request: by the service's model, and for features that hosts of this machine lack."""

from __future__ import annotations

import tempfile
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.data import file_uris
from scriptmode.errors import DataError, RequestError
from scriptmode.messages import did_you_mean, did_you_mean_path
from scriptmode.platforms.local.system import file_systems, ports
from scriptmode.request import service_model
from scriptmode.request.parse import parse_request
from scriptmode.spec.hosts import LOCAL_CONTAINER, LOCAL_PROCESS, HostKind
from scriptmode.spec.inputs import FileSystemInput, TrainingInput
from scriptmode.spec.metric_definitions import Definition
from scriptmode_runtime.contract import CHECKPOINTS_DIR, DEFAULT_BASE_DIR, MODEL_DIR_PARAMETER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scriptmode.spec.inputs import Channel
    from scriptmode.spec.job_request import JobRequest
    from scriptmode.spec.training_job import InstanceGroup, Resources

#: Fields that may hold a file:// URI here, which the service does not accept ...
FILE_URI_FIELDS = frozenset(
    {"InputDataConfig.DataSource.S3DataSource.S3Uri", "OutputDataConfig.S3OutputPath", "CheckpointConfig.S3Uri"}
)
#: ... and fields that may hold an instance type of this machine.
INSTANCE_TYPE_FIELDS = frozenset({"ResourceConfig.InstanceType", "ResourceConfig.InstanceGroups.InstanceType"})

INSTANCE_TYPES = (LOCAL_PROCESS, *LOCAL_CONTAINER)

NOT_YET = "is not supported by the local platform yet"


def validate_request(request: Mapping[str, Any]) -> None:
    """Raise `RequestError` listing every problem of a request."""
    _refuse("the request is not valid", list(service_model.problems(request, _extension)))
    # The rules rely on a request of the right shape.
    job = parse_request(request)
    found = (
        _algorithm(request, job.resources.host_kind),
        _instances(job.resources),
        _port_limit(job.resources),
        _channels(request),
        _locations(job),
        _model_dir(job),
        _metrics(job),
    )
    _refuse("the local platform cannot run this job", list(chain.from_iterable(found)))


def check_paths(job: JobRequest, own: Path, folders: Mapping[str, str]) -> None:
    """Raise `DataError` for a local path that cannot be used, `CredentialsError` for an S3 URI without credentials.

    ``folders`` are those of file systems by ID. Creates the output folders on this machine, which is the only way to
    find out whether that is possible, except for ``own``, which the job store creates.
    """
    given = {"OutputDataConfig.S3OutputPath": job.output.path, "CheckpointConfig.S3Uri": job.output.checkpoint_uri}
    outputs = {field: uri for field, uri in given.items() if uri}
    check_inputs(job, folders)
    sources = [channel.source for channel in job.channels]
    for uri in (*(source.s3_data for source in sources if isinstance(source, TrainingInput)), *outputs.values()):
        _check_credentials(uri)
    for field, uri in outputs.items():
        if file_uris.is_file(uri) and file_uris.file_path(uri) != own:
            _make_writable(field, file_uris.file_path(uri))


def check_inputs(job: JobRequest, folders: Mapping[str, str]) -> None:
    """Raise `DataError` for a channel on this machine that cannot be read; S3 is not accessed.

    ``folders`` are those of file systems by ID. Has no side effect.
    """
    for channel in job.channels:
        _check_input(channel, folders)


def _check_input(channel: Channel, folders: Mapping[str, str]) -> None:
    name, source = f"channel {channel.name!r}", channel.source
    if isinstance(source, FileSystemInput):
        try:
            file_systems.find_folder(source, folders)
        except DataError as error:
            raise DataError(f"{name}: {error.message}", advice=error.advice) from error
    elif isinstance(source, TrainingInput) and file_uris.is_file(source.s3_data):
        path = file_uris.file_path(source.s3_data)
        if not file_uris.exists(path):
            raise DataError(
                f"{name}: there is no file or folder {str(path)!r}",
                advice=did_you_mean_path(path) or "correct the path or create it",
            )


def _refuse(why: str, found: Sequence[str]) -> None:
    if len(found) == 1:
        raise RequestError(f"{why}: {found[0]}")
    if found:
        listed = "\n".join(f"- {problem}" for problem in found)
        raise RequestError(f"{why}:\n{listed}")


def _check_credentials(uri: str) -> None:
    if not file_uris.is_file(uri):
        from scriptmode.aws.s3 import require_credentials

        require_credentials(uri)


def _make_writable(field: str, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Permissions are not enough to know: root may write to /proc, where no file can be created.
        Path(tempfile.mkdtemp(prefix=".new-", dir=folder)).rmdir()
    except OSError as error:
        raise DataError(
            f"{field}: {str(folder)!r} cannot be written: {error.strerror or error}", advice="name another folder"
        ) from error


def _extension(field: str, value: object) -> bool:
    if field in FILE_URI_FIELDS:
        return isinstance(value, str) and file_uris.is_file(value)
    return field in INSTANCE_TYPE_FIELDS and value in INSTANCE_TYPES


def _algorithm(request: Mapping[str, Any], hosts: HostKind) -> Iterator[str]:
    if "AlgorithmSpecification" not in request:
        yield "the request lacks 'AlgorithmSpecification'"
    algorithm = request.get("AlgorithmSpecification", {})
    in_containers = hosts is HostKind.CONTAINER
    yield from _image(algorithm) if in_containers else _no_image(algorithm)
    if "ServerlessJobConfig" in request:
        yield f"ServerlessJobConfig {NOT_YET}; leave it out"
    if request.get("EnableNetworkIsolation") and not in_containers:
        yield (
            "EnableNetworkIsolation is True: hosts that are processes cannot be isolated; leave it out, or use "
            "instance type 'local'"
        )


def _image(algorithm: Mapping[str, Any]) -> Iterator[str]:
    if "TrainingImage" not in algorithm:
        yield "AlgorithmSpecification.TrainingImage is missing; give the image of the hosts, which are containers"
    for field in ("AlgorithmName", "TrainingImageConfig"):
        if field in algorithm:
            yield f"AlgorithmSpecification.{field} {NOT_YET}; leave it out"


def _no_image(algorithm: Mapping[str, Any]) -> Iterator[str]:
    for field in ("AlgorithmName", "TrainingImageConfig"):
        if field in algorithm:
            yield f"AlgorithmSpecification.{field}: hosts that are processes run no container; leave it out"


def _instances(resources: Resources) -> Iterator[str]:
    groups = resources.instance_groups
    if (resources.instance_type is not None or resources.instance_count is not None) == bool(groups):
        yield "ResourceConfig must have either InstanceType and InstanceCount, or InstanceGroups"
        return
    parts: list[tuple[str, InstanceGroup | Resources]] = [("ResourceConfig", resources)]
    if groups:
        parts = [(f"ResourceConfig.InstanceGroups[{index}]", group) for index, group in enumerate(groups)]
    for path, part in parts:
        if (part.instance_count or 0) < 1:
            yield f"{path}.InstanceCount is {part.instance_count!r}; give at least 1"
        if part.instance_type not in INSTANCE_TYPES:
            runs = " and ".join(map(repr, INSTANCE_TYPES))
            yield f"{path}.InstanceType is {part.instance_type!r}; the local platform runs {runs}"
    if len({group.instance_type == LOCAL_PROCESS for group in groups}) > 1:
        yield f"ResourceConfig.InstanceGroups: {LOCAL_PROCESS!r} cannot be combined with others; use one kind"
    yield from _repeated("instance group", [group.instance_group_name for group in groups])


def _port_limit(resources: Resources) -> Iterator[str]:
    count = resources.count
    if resources.host_kind is not HostKind.CONTAINER and count > (most := ports.max_hosts()):
        yield f"ResourceConfig asks for {count:,} hosts; this machine has ports for {most:,} hosts that are processes"


def _channels(request: Mapping[str, Any]) -> Iterator[str]:
    channels = request.get("InputDataConfig", [])
    names = [channel["ChannelName"] for channel in channels]
    yield from _repeated("channel", names)
    groups = {group["InstanceGroupName"] for group in request.get("ResourceConfig", {}).get("InstanceGroups", ())}
    job_mode = request.get("AlgorithmSpecification", {}).get("TrainingInputMode", "File")
    for channel in channels:
        name = f"channel {channel['ChannelName']!r}"
        if channel["ChannelName"] in (".", ".."):
            yield f"{name}: a channel name is the name of a folder; choose another one"
        mode = channel.get("InputMode", job_mode)
        if mode == "Pipe":
            yield from _fifo_names(channel["ChannelName"], names)
        for field in ("CompressionType", "RecordWrapperType"):
            if mode != "Pipe" and channel.get(field, "None") != "None":
                yield f"{name}: {field} {channel[field]!r} is valid only in Pipe mode; leave it out in {mode} mode"
        yield from _data_source(name, channel["DataSource"], mode, groups)


def _fifo_names(pipe: str, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        stem, _, number = name.rpartition("_")
        if stem == pipe and number.isdigit():
            yield f"channel {name!r}: channel {pipe!r} is in Pipe mode and has FIFOs of such names; rename one"


def _data_source(name: str, source: Mapping[str, Any], mode: str, groups: set[str]) -> Iterator[str]:
    if set(source) == {"S3DataSource"}:
        yield from _s3_data_source(name, source["S3DataSource"], mode, groups)
    elif set(source) == {"FileSystemDataSource"}:
        if mode != "File":
            yield f"{name}: a file system is mounted, not streamed; give the channel InputMode 'File', not {mode!r}"
    else:
        yield f"{name}: DataSource holds {sorted(source)}; give either S3DataSource or FileSystemDataSource"


def _s3_data_source(name: str, source: Mapping[str, Any], mode: str, groups: set[str]) -> Iterator[str]:
    data_type = source["S3DataType"]
    if data_type not in ("S3Prefix", "ManifestFile", "AugmentedManifestFile"):
        yield f"{name}: S3DataType {data_type!r} {NOT_YET}; use 'S3Prefix'"
    if data_type == "AugmentedManifestFile" and mode != "Pipe":
        yield f"{name}: S3DataType {data_type!r} is valid only in Pipe mode, not in {mode} mode"
    if (data_type == "AugmentedManifestFile") != bool(source.get("AttributeNames")):
        yield f"{name}: AttributeNames needs S3DataType 'AugmentedManifestFile', and vice versa; it is {data_type!r}"
    if "HubAccessConfig" in source:
        yield f"{name}: HubAccessConfig {NOT_YET}; leave it out"
    for group in source.get("InstanceGroupNames", ()):
        if group not in groups:
            yield f"{name}: there is no instance group {group!r}; {did_you_mean(group, groups) or 'leave it out'}"
    yield from _uri(f"{name}: S3Uri", source["S3Uri"])


def _locations(job: JobRequest) -> Iterator[str]:
    yield from _uri("OutputDataConfig.S3OutputPath", job.output.path or "")
    if job.monitoring.tensorboard is not None:
        yield f"TensorBoardOutputConfig {NOT_YET}; leave it out and write the events below SM_OUTPUT_DATA_DIR"
    if job.output.checkpoint_uri is None:
        return
    yield from _uri("CheckpointConfig.S3Uri", job.output.checkpoint_uri)
    local = job.output.checkpoint_local_path or f"{DEFAULT_BASE_DIR}/{CHECKPOINTS_DIR}"
    if ".." in local.split("/") or not local.startswith(DEFAULT_BASE_DIR + "/"):
        yield f"CheckpointConfig.LocalPath is {local!r}; give a path below {DEFAULT_BASE_DIR}/, without '..'"


def _model_dir(job: JobRequest) -> Iterator[str]:
    value = job.model_dir
    if not file_uris.is_file(value):
        return
    field = f"HyperParameters[{MODEL_DIR_PARAMETER!r}]"
    try:
        path = file_uris.file_path(value)
    except ValueError as error:
        yield f"{field}: {error}"
        return
    root = Path(DEFAULT_BASE_DIR)
    overlaps = path == root or root in path.parents or path in root.parents
    if overlaps and job.resources.host_kind is HostKind.CONTAINER:
        yield f"{field} is {value!r}; a container has its own {DEFAULT_BASE_DIR}; use {DEFAULT_BASE_DIR}/model"


def _metrics(job: JobRequest) -> Iterator[str]:
    # The service uses regular expressions of Java, which only the service can validate.
    problems = (_no_pattern(name, regex) for name, regex in job.algorithm.metric_definitions)
    yield from (f"AlgorithmSpecification.MetricDefinitions: {error}" for error in problems if error)


def _no_pattern(name: str, regex: str) -> str:
    try:
        Definition(name, regex)
    except DataError as error:
        return str(error)
    return ""


def _uri(field: str, uri: str) -> Iterator[str]:
    if file_uris.is_file(uri):
        try:
            file_uris.file_path(uri)
        except ValueError as error:
            yield f"{field}: {error}"
    elif not uri.startswith("s3://"):
        yield f"{field} is {uri!r}; the local platform reads s3:// and file:// URIs"


def _repeated(what: str, names: list[str]) -> Iterator[str]:
    for name, count in Counter(names).items():
        if count > 1:
            yield f"the {what} name {name!r} occurs {count} times; names must differ"
