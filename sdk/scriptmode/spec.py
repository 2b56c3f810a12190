"""One training job as a value: frozen, checked once when it is made, no I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scriptmode.errors import SpecError, suggestion
from scriptmode.inputs import INPUT_MODES, Channel, FileSystemInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.distribution import Distribution


#: The channel that carries the source archive where the hosts have no network (SageMaker SDK).
CODE_CHANNEL = "code"


def _whole_number(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SpecError(f"{name} is {value!r}; give a whole number of at least {least}")


def _text(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, str) or not value):
        raise SpecError(f"{name} is {value!r}; give a string that is not empty")


@dataclass(frozen=True)
class InstanceGroup:
    """Some hosts of one type in a heterogeneous cluster, known by a name."""

    instance_group_name: str
    instance_type: str
    instance_count: int

    def __post_init__(self) -> None:
        _text("instance_group_name", self.instance_group_name)
        _text("instance group's instance_type", self.instance_type)
        _whole_number("instance group's instance_count", self.instance_count, 1)


@dataclass(frozen=True)
class Resources:
    """The hosts: a count of one type, or groups. ``volume_size`` in GB, ``keep_alive_period`` in seconds."""

    instance_count: int | None
    instance_type: str | None
    instance_groups: tuple[InstanceGroup, ...] = ()
    volume_size: int = 30
    volume_kms_key: str | None = None
    keep_alive_period: int | None = None
    training_plan: str | None = None
    #: The service's InstancePlacementConfig, as it is.
    instance_placement: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.instance_groups:
            if self.instance_count is not None or self.instance_type is not None:
                raise SpecError("instance_groups say types and counts; leave out instance_count and instance_type")
        else:
            if self.instance_type is None:
                raise SpecError("instance_type is missing; give 'local_process', a SageMaker type, or instance_groups")
            _text("instance_type", self.instance_type)
            _whole_number("instance_count", 1 if self.instance_count is None else self.instance_count, 1)
        _whole_number("volume_size", self.volume_size, 1)
        if self.keep_alive_period is not None:
            _whole_number("keep_alive_period_in_seconds", self.keep_alive_period, 0)

    @property
    def count(self) -> int:
        """All hosts."""
        if self.instance_groups:
            return sum(group.instance_count for group in self.instance_groups)
        return self.instance_count or 1

    @property
    def types(self) -> tuple[str, ...]:
        """The instance type of each group, or the one type."""
        if self.instance_groups:
            return tuple(group.instance_type for group in self.instance_groups)
        return (self.instance_type or "",)


@dataclass(frozen=True)
class Algorithm:
    """The image and what it runs. ``metric_definitions`` are ``{"Name": ..., "Regex": ...}``."""

    image_uri: str | None = None
    input_mode: str = "File"
    metric_definitions: tuple[tuple[str, str], ...] = ()
    container_entry_point: tuple[str, ...] = ()
    container_arguments: tuple[str, ...] = ()
    repository_access_mode: str | None = None
    repository_credentials_provider_arn: str | None = None
    #: Of TensorFlow, and of Python as ``py311``: they choose an image, or are checked against what is installed.
    framework_version: str | None = None
    py_version: str | None = None

    def __post_init__(self) -> None:
        _text("image_uri", self.image_uri)
        _text("framework_version", self.framework_version)
        _text("py_version", self.py_version)
        if self.input_mode not in INPUT_MODES:
            raise SpecError(f"input_mode is {self.input_mode!r}{suggestion(str(self.input_mode), INPUT_MODES)}")


#: A source_dir that is packed already, and only referred to.
_REMOTE = ("s3://", "file://")


@dataclass(frozen=True)
class Script:
    """The user's program. ``dependencies`` are folders or files packed beside it."""

    entry_point: str
    source_dir: str | None = None
    dependencies: tuple[str, ...] = ()
    log_level: int = 20

    def __post_init__(self) -> None:
        _text("entry_point", self.entry_point)
        _text("source_dir", self.source_dir)
        _whole_number("container_log_level", self.log_level, 0)
        if self.dependencies and self.is_packed:
            raise SpecError(f"dependencies cannot be added to source_dir {self.source_dir!r}, which is packed already")

    @property
    def is_packed(self) -> bool:
        """Whether ``source_dir`` is the URI of a source archive."""
        return self.source_dir is not None and self.source_dir.startswith(_REMOTE)


@dataclass(frozen=True)
class Output:
    """Where artifacts go. ``path`` is a URI; ``None`` takes the platform's default."""

    path: str | None = None
    kms_key: str | None = None
    compress: bool = True
    code_location: str | None = None
    checkpoint_uri: str | None = None
    checkpoint_local_path: str | None = None

    def __post_init__(self) -> None:
        for name, uri in (
            ("output_path", self.path),
            ("code_location", self.code_location),
            ("checkpoint_s3_uri", self.checkpoint_uri),
        ):
            _text(name, uri)
            if uri is not None and not uri.startswith(("s3://", "file://", "https://")):
                raise SpecError(f"{name} is {uri!r}; give an 's3://...' URI (or 'file://...' on the local platform)")
        if self.checkpoint_local_path is not None and self.checkpoint_uri is None:
            raise SpecError("checkpoint_local_path needs checkpoint_s3_uri, the place it is saved to")


@dataclass(frozen=True)
class Limits:
    """Times in seconds. Spot training needs ``max_wait`` of at least ``max_run``."""

    max_run: int = 24 * 60 * 60
    max_wait: int | None = None
    use_spot_instances: bool = False
    max_retry_attempts: int | None = None

    def __post_init__(self) -> None:
        _whole_number("max_run", self.max_run, 1)
        if self.use_spot_instances and self.max_wait is None:
            raise SpecError(f"use_spot_instances needs max_wait, at least max_run ({self.max_run} s)")
        if self.max_wait is not None:
            if not self.use_spot_instances:
                raise SpecError("max_wait is for spot training; add use_spot_instances=True or leave it out")
            _whole_number("max_wait", self.max_wait, self.max_run)
        if self.max_retry_attempts is not None:
            _whole_number("max_retry_attempts", self.max_retry_attempts, 1)


@dataclass(frozen=True)
class Network:
    """The VPC (both lists or neither) and what may pass."""

    subnets: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    isolation: bool = False
    encrypt_traffic: bool = False

    def __post_init__(self) -> None:
        if bool(self.subnets) != bool(self.security_group_ids):
            raise SpecError("subnets and security_group_ids go together: give both or neither")


@dataclass(frozen=True)
class Features:
    """Switches of the service that a job may ask for; ``None`` says nothing."""

    sagemaker_metrics: bool | None = None
    infra_check: bool | None = None
    remote_debug: bool | None = None
    session_tag_chaining: bool | None = None


@dataclass(frozen=True)
class TrainingJobSpec:
    """Everything one ``fit`` says, but the job's name and what the platform fills in."""

    base_job_name: str
    resources: Resources
    algorithm: Algorithm = Algorithm()
    script: Script | None = None
    distribution: Distribution | None = None
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    channels: tuple[Channel, ...] = ()
    output: Output = Output()
    limits: Limits = Limits()
    network: Network = Network()
    features: Features = Features()
    role: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    #: ``False`` leaves the hyperparameter out, ``True`` derives it from the job, a string is taken as it is.
    model_dir: str | bool = False

    def __post_init__(self) -> None:
        if self.distribution is not None and self.script is None:
            raise SpecError("distribution starts a script on every host; give entry_point")
        _text("role", self.role)
        for name, value in self.environment.items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise SpecError(f"environment[{name!r}] is {value!r}; names and values are strings")
        if self.network.isolation and any(channel.name == CODE_CHANNEL for channel in self.channels):
            raise SpecError(f"channel {CODE_CHANNEL!r} carries the script under network isolation; rename yours")
        self._check_groups()
        if not self.network.subnets and any(isinstance(c.source, FileSystemInput) for c in self.channels):
            raise SpecError("a FileSystemInput is reached through a VPC; give subnets and security_group_ids")

    def _check_groups(self) -> None:
        known = [group.instance_group_name for group in self.resources.instance_groups]
        wanted = list(self.distribution.instance_groups) if self.distribution else []
        for channel in self.channels:
            wanted.extend(getattr(channel.source, "instance_groups", ()))
        for name in wanted:
            if name not in known:
                raise SpecError(f"instance group {name!r} is not one of the job's{suggestion(name, known)}")
