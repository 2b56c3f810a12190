"""One training job as a value: frozen, validated when it is created, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from scriptmode._core.spec.hosts import HostGroup, HostKind, host_kind
from scriptmode._core.spec.hyperparameters import encode_hyperparameters
from scriptmode._core.spec.versions import check_framework_version, check_py_version
from scriptmode._core.spec.whole_numbers import set_truth, set_whole
from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import SpecError, invalid
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode._core.spec.distribution import Distribution
    from scriptmode._core.spec.git_source import GitSource
    from scriptmode._core.spec.inputs import Channel


#: Roles that exactly one host of a cluster has.
_SINGLE_HOST_ROLES = ("master", "chief", "evaluator")
#: The channel that carries the source archive where the hosts have no network (SageMaker SDK).
CODE_CHANNEL = "code"


def _text(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not value:
        raise invalid(name, f"is {value!r}", "give a string that is not empty")
    if problem := contract.text_problem(value, encoding_errors="surrogateescape"):
        raise invalid(name, f"is {value!r}, which {problem}", "correct it")


@dataclass(frozen=True)
class InstanceGroup:
    """A named group of hosts of one type in a heterogeneous cluster.

    Args:
        instance_group_name: The group's name.
        instance_type: The hosts' instance type.
        instance_count: Number of hosts, at least 1.

    Raises:
        SpecError: For a wrong value.
    """

    instance_group_name: str
    instance_type: str
    instance_count: int

    def __post_init__(self) -> None:
        _text("instance_group_name", self.instance_group_name)
        _text("instance group's instance_type", self.instance_type)
        set_whole(self, "instance_count", "instance group's instance_count", 1)


@dataclass(frozen=True)
class Resources:
    """The hosts: a number of one type, or groups. ``volume_size`` is in GB, ``keep_alive_period`` in seconds."""

    instance_count: int | None
    instance_type: str | None
    instance_groups: tuple[InstanceGroup, ...] = ()
    volume_size: int = 30
    volume_kms_key: str | None = None
    keep_alive_period: int | None = None

    def __post_init__(self) -> None:
        if self.instance_groups:
            if self.instance_count is not None or self.instance_type is not None:
                raise invalid("instance_groups", "say types and counts", "leave out instance_count and instance_type")
        else:
            if self.instance_type is None:
                from scriptmode._core.spec import instance_types

                raise invalid("instance_type", "is missing", f"give {instance_types.describe()}; or instance_groups")
            _text("instance_type", self.instance_type)
            set_whole(self, "instance_count", "instance_count", 1, optional=True)
        set_whole(self, "volume_size", "volume_size", 0)
        set_whole(self, "keep_alive_period", "keep_alive_period_in_seconds", 0, optional=True)
        names = [group.instance_group_name for group in self.instance_groups]
        for name in names:
            if (number := names.count(name)) > 1:
                what = f"{number} instance groups are named {name!r}"
                raise SpecError(what, "rename all but one", argument="instance_groups")

    @property
    def count(self) -> int:
        """Number of hosts of all groups."""
        if self.instance_groups:
            return sum(group.instance_count for group in self.instance_groups)
        return self.instance_count or 1

    @property
    def types(self) -> tuple[str, ...]:
        """The instance type of each group, or the one type."""
        if self.instance_groups:
            return tuple(group.instance_type for group in self.instance_groups)
        return (self.instance_type or "",)

    @property
    def host_kind(self) -> HostKind:
        """What the hosts are, by their instance types."""
        return host_kind(self.types)

    @cached_property
    def host_groups(self) -> tuple[HostGroup, ...]:
        """The hosts by group, numbered through all groups; one group by default, none if the type is not known."""
        if not self.instance_groups and not self.instance_type:
            return ()
        parts = self.instance_groups or (InstanceGroup(contract.HOMOGENEOUS_GROUP, self.types[0], self.count),)
        groups: list[HostGroup] = []
        first = 1
        for part in parts:
            numbers = range(first, first + part.instance_count)
            hosts = tuple(f"algo-{number}" for number in numbers)
            groups.append(HostGroup(part.instance_group_name, part.instance_type, hosts))
            first = numbers.stop
        return tuple(groups)

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The name of every host, in order."""
        return tuple(host for group in self.host_groups for host in group.hosts)


@dataclass(frozen=True)
class Algorithm:
    """The image and the program it runs. ``metric_definitions`` are pairs of a name and a regular expression."""

    image_uri: str | None = None
    input_mode: str = "File"
    metric_definitions: tuple[tuple[str, str], ...] = ()
    container_entry_point: tuple[str, ...] = ()
    container_arguments: tuple[str, ...] = ()
    #: Of TensorFlow, and of Python as ``py311``: they choose an image, or are compared with what is installed.
    framework_version: str | None = None
    py_version: str | None = None

    def __post_init__(self) -> None:
        _text("image_uri", self.image_uri)
        if self.image_uri and self.image_uri.endswith(".py") and ":" not in self.image_uri:
            raise invalid("image_uri", f"is {self.image_uri!r}, a script", f"write entry_point={self.image_uri!r}")
        check_framework_version(self.framework_version)
        check_py_version(self.py_version)


#: Python's names of log levels; AWS's `train` sets one that is a name in upper case, and reads a number elsewhere.
_LEVELS = {"CRITICAL": 50, "FATAL": 50, "ERROR": 40, "WARNING": 30, "WARN": 30, "INFO": 20, "DEBUG": 10, "NOTSET": 0}
#: A source_dir with such a URI is an archive already.
_REMOTE = ("s3://", "file://")


@dataclass(frozen=True)
class Script:
    """The user's program. ``dependencies`` are packed with it; with ``git`` all paths are within the repository."""

    entry_point: str
    source_dir: str | None = None
    dependencies: tuple[str, ...] = ()
    #: A number once it is validated.
    log_level: int | str = 20
    git: GitSource | None = None
    #: Arguments that follow the hyperparameters, unchanged.
    arguments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _text("entry_point", self.entry_point)
        if self.entry_point.endswith(".ipynb"):
            advice = f"write a script from it: jupyter nbconvert --to script {self.entry_point}"
            raise invalid("entry_point", f"is {self.entry_point!r}, a notebook", advice)
        _text("source_dir", self.source_dir)
        for dependency in self.dependencies:
            _text("dependencies", dependency)
        object.__setattr__(self, "log_level", _LEVELS.get(str(self.log_level).upper(), self.log_level))
        set_whole(self, "log_level", "container_log_level", 0, hint=", or a name such as 'INFO'")
        if self.dependencies and self.is_packed:
            what = f"dependencies: source_dir {self.source_dir!r} is packed already"
            raise SpecError(what, "pack them into it", argument="dependencies")
        place = str(self.source_dir)
        is_folder = self.is_packed and place.endswith("/")
        if is_folder or (place.startswith("s3://") and place.endswith((".py", ".zip"))):
            what = f"is {place!r}, {'a folder in S3' if is_folder else 'which is not a tar archive'}"
            raise invalid("source_dir", what, "give a sourcedir.tar.gz there, or a local folder")
        if self.git and self.is_packed:
            raise invalid("git_config", f"and source_dir {self.source_dir!r} both say where the source is", "keep one")

    @property
    def is_packed(self) -> bool:
        """Whether ``source_dir`` is the URI of a source archive."""
        return self.source_dir is not None and self.source_dir.startswith(_REMOTE)

    @property
    def directory(self) -> str:
        """The source's directory on this machine as the caller named it; "" for the current one, and for elsewhere."""
        return "" if self.git or self.is_packed else self.source_dir or self.entry_point.rpartition("/")[0]


@dataclass(frozen=True)
class Output:
    """Where artifacts are stored. ``path`` is a URI; ``None`` is the platform's default."""

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
            if uri is not None and (not str(uri).startswith(("s3://", "file://", "https://")) or uri.endswith("://")):
                advice = "give an 's3://...' URI (or 'file://...' on the local platform)"
                raise invalid(name, f"is {uri!r}", advice)
            _text(name, uri)


@dataclass(frozen=True)
class Limits:
    """Time limits in seconds. Spot training needs ``max_wait`` of at least ``max_run``; with retries it is optional."""

    max_run: int = 24 * 60 * 60
    max_wait: int | None = None
    use_spot_instances: bool = False
    max_retry_attempts: int | None = None

    def __post_init__(self) -> None:
        set_whole(self, "max_run", "max_run", 1)
        set_whole(self, "max_retry_attempts", "max_retry_attempts", 1, optional=True)
        set_truth(self, "use_spot_instances", "use_spot_instances")
        if self.use_spot_instances and self.max_wait is None:
            raise invalid("use_spot_instances", "needs max_wait", f"give max_wait, at least max_run ({self.max_run} s)")
        if self.max_wait is not None:
            if not self.use_spot_instances and self.max_retry_attempts is None:
                what = "is for spot training and for retries"
                raise invalid("max_wait", what, "add use_spot_instances=True or max_retry_attempts, or leave it out")
            set_whole(self, "max_wait", "max_wait", self.max_run, hint=f", which is max_run ({self.max_run} s)")


@dataclass(frozen=True)
class Network:
    """The VPC, network isolation and encryption."""

    subnets: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    #: ``None`` is the platform's default.
    isolation: bool | None = None
    encrypt_traffic: bool | None = None

    def __post_init__(self) -> None:
        set_truth(self, "isolation", "enable_network_isolation")
        set_truth(self, "encrypt_traffic", "encrypt_inter_container_traffic")


@dataclass(frozen=True)
class Monitoring:
    """Debugger, profiler and TensorBoard, with the service's fields; they store in the output path by default.

    Off by default: each makes the service start more resources for the job, the debugger's hook needs a library that
    today's images do not have, and all of them store data that is billed. ``None`` leaves the field out,
    ``debug_hook=False`` and ``profiler_off`` switch off.
    """

    debug_hook: Mapping[str, Any] | bool | None = None
    debug_rules: tuple[Mapping[str, Any], ...] = ()
    profiler: Mapping[str, Any] | None = None
    profiler_rules: tuple[Mapping[str, Any], ...] = ()
    profiler_off: bool | None = None
    tensorboard: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        set_truth(self, "profiler_off", "disable_profiler")
        if self.profiler_off and (self.profiler_rules or (self.profiler and not self.profiler.get("DisableProfiler"))):
            what = "disable_profiler=True contradicts profiler_config or profiler rules"
            raise SpecError(what, "leave one out", argument="disable_profiler")
        if self.debug_rules and self.debug_hook is False:
            raise invalid("rules", "judge what the debugger's hook stores", "leave out debugger_hook_config=False")

    def with_rules(self, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Monitoring:
        """Return a copy with what ``change`` makes of each rule."""
        debug, profiler = (tuple(map(change, rules)) for rules in (self.debug_rules, self.profiler_rules))
        return replace(self, debug_rules=debug, profiler_rules=profiler)


@dataclass(frozen=True)
class PretrainedModel:
    """A pretrained model: the archive ``uri``, an input channel of the job."""

    uri: str
    channel_name: str = "model"


@dataclass(frozen=True)
class TrainingJobSpec:
    """All arguments of one ``fit``, without the job's name and the platform's defaults."""

    base_job_name: str
    resources: Resources
    algorithm: Algorithm = Algorithm()
    script: Script | None = None
    distribution: Distribution | None = None
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    #: ``None`` is the platform's default.
    environment: Mapping[str, str] | None = None
    channels: tuple[Channel, ...] = ()
    model: PretrainedModel | None = None
    output: Output = Output()
    limits: Limits = Limits()
    network: Network = Network()
    #: Arguments of an estimator that are fields of the request as they are, by their names.
    plain_fields: Mapping[str, Any] = field(default_factory=dict)
    monitoring: Monitoring = Monitoring()
    role: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    experiment: Mapping[str, str] = field(default_factory=dict)
    #: Fields of the request that this class does not have, unchanged.
    additional_fields: Mapping[str, Any] = field(default_factory=dict)
    #: Whether the defaults of the SageMaker config file are ignored.
    ignore_config_defaults: bool = False
    #: ``False`` leaves the hyperparameter out, ``True`` derives it from the job, a string is its value.
    model_dir: str | bool = False

    def __post_init__(self) -> None:
        if self.distribution is not None and self.script is None:
            raise invalid("distribution", "starts a script on every host", "give entry_point")
        _text("role", self.role)
        for name, value in (self.environment or {}).items():
            if not isinstance(name, str) or not isinstance(value, str):
                # A value may be a secret: its type is enough to find it.
                kind = "None" if value is None else f"of type {type(value).__name__}"
                what = f"environment[{name!r}] is {kind}"
                raise SpecError(what, "names and values are strings, give str(...) of it", argument="environment")
        encode_hyperparameters(self.hyperparameters, script_mode=self.script is not None)
        self._check_channels()
        self._check_groups()

    @property
    def locations(self) -> dict[str, str]:
        """What the job reads and writes, by its channel or argument: URIs, and a source directory's path."""
        given = {
            **{f"channel {channel.name!r}": getattr(channel.source, "s3_data", None) for channel in self.channels},
            "output_path": self.output.path,
            "code_location": self.output.code_location,
            "checkpoint_s3_uri": self.output.checkpoint_uri,
            "model_uri": self.model.uri if self.model else None,
            "source_dir": self.script.source_dir if self.script else None,
        }
        return {what: location for what, location in given.items() if location is not None}

    def _check_channels(self) -> None:
        names = [channel.name for channel in self.channels]
        if self.model is not None:
            names.append(self.model.channel_name)
        if self.network.isolation and self.script is not None and CODE_CHANNEL in names:
            what = f"channel {CODE_CHANNEL!r} carries the script under network isolation"
            raise SpecError(what, "rename yours", argument="inputs")
        if self.model is not None and names.count(self.model.channel_name) > 1:
            what = f"channel {self.model.channel_name!r} is the one of model_uri"
            raise SpecError(what, "rename it or give model_channel_name", argument="inputs")

    def _check_groups(self) -> None:
        known = [group.instance_group_name for group in self.resources.instance_groups]
        wanted = list(self.distribution.instance_groups) if self.distribution else []
        wanted.extend(group for groups in self._roles.values() for group in groups)
        for channel in self.channels:
            wanted.extend(getattr(channel.source, "instance_groups", ()))
        for name in (group for group in wanted if group not in known):
            hint = did_you_mean(name, known) or "give instance_groups, the job has none"
            raise SpecError(f"instance group {name!r} is not one of the job's", hint, argument="instance_groups")
        if self.distribution and not self._roles and not self.distribution.instance_groups and len(known) > 1:
            kind = type(self.distribution).__name__
            what = f"{kind} does not name which of the job's {len(known)} instance groups train together"
            raise SpecError(what, f"name them: {kind}(instance_groups={known!r})", argument="distribution")
        self._check_roles()

    @property
    def _roles(self) -> Mapping[str, tuple[str, ...]]:
        roles: Mapping[str, tuple[str, ...]] = getattr(self.distribution, "roles", {})
        return roles

    def _check_roles(self) -> None:
        counts = {group.instance_group_name: group.instance_count for group in self.resources.instance_groups}
        groups_together = self.distribution.instance_groups if self.distribution else ()
        together = sum(counts[name] for name in dict.fromkeys(groups_together)) or self.resources.count
        self._check_tf_config(together)
        if (servers := getattr(self.distribution, "ps", None) or 0) >= together:
            what = f"distribution's ps is {servers} of {together} hosts, and none is left to train"
            raise SpecError(what, "give more hosts", argument="instance_count")
        for role, groups in self._roles.items():
            count = sum(counts[group] for group in groups)
            if role in _SINGLE_HOST_ROLES and count != 1:
                raise SpecError(
                    f"distribution's roles give {role!r} the group {' and '.join(map(repr, groups))} of {count} hosts",
                    "there is one, give it a group with instance_count 1",
                    argument="distribution",
                )

    def _check_tf_config(self, together: int) -> None:
        given = (self.environment or {}).get("TF_CONFIG", "").strip()
        if given and not isinstance(contract.decode(given), dict):
            what = "environment['TF_CONFIG'] is not a JSON object"
            raise SpecError(what, "correct it, or leave it out", argument="environment")
        if not given or not hasattr(self.distribution, "roles"):
            return
        if self._roles or getattr(self.distribution, "evaluator", False):
            what = "environment['TF_CONFIG'] and the distribution's roles or evaluator both name tasks"
            raise SpecError(what, "keep one", argument="environment")
        if together > 1:
            what = f"environment['TF_CONFIG'] gives all {together} hosts one task"
            raise SpecError(what, "leave it out: the runtime writes TF_CONFIG for each host", argument="environment")
