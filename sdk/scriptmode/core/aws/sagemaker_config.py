"""The SageMaker config file: defaults of an administrator and a user for every training job of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode.core.aws.s3_uris import SCHEME
from scriptmode.core.machine.yaml_files import parse_yaml
from scriptmode.core.text.messages import validate_keys
from scriptmode.errors import ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

FILE_NAME = "config.yaml"
#: Environment variables with other locations of the files (SageMaker SDK, "Configuring and using defaults").
ADMIN_OVERRIDE, USER_OVERRIDE = "SAGEMAKER_ADMIN_CONFIG_OVERRIDE", "SAGEMAKER_USER_CONFIG_OVERRIDE"
SCHEMA_VERSION = "1.0"
_APPLICATION = "sagemaker"


class SageMakerConfig(NamedTuple):
    """Defaults for a training job; ``None`` or empty for keys that the file does not contain."""

    role: str | None = None
    output_kms_key: str | None = None
    volume_kms_key: str | None = None
    subnets: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    network_isolation: bool | None = None
    encrypt_traffic: bool | None = None
    disable_profiler: bool | None = None
    debug_hook: bool | None = None
    environment: Mapping[str, str] | None = None
    tags: tuple[tuple[str, str], ...] = ()
    default_bucket: str | None = None
    default_bucket_prefix: str | None = None


def read_config(environ: Mapping[str, str], fetch: Callable[[str], bytes]) -> SageMakerConfig:
    """Read the administrator's file, then the user's, which overrides it: mappings are merged, other values replaced.

    The files are in platformdirs' directories for sites and users. ``SAGEMAKER_ADMIN_CONFIG_OVERRIDE`` and
    ``SAGEMAKER_USER_CONFIG_OVERRIDE`` name a file, a directory that contains ``config.yaml``, or the ``s3://`` URI of
    either. ``fetch`` returns the bytes at an ``s3://`` URI or raises `DataError`. Raises `ConfigError` if a variable
    names a file that does not exist, and for a file that is unreadable or has unknown keys.
    """
    from platformdirs import site_config_dir, user_config_dir

    merged: dict[str, Any] = {}
    names = []
    for variable, directory in ((ADMIN_OVERRIDE, site_config_dir), (USER_OVERRIDE, user_config_dir)):
        location = environ.get(variable)
        if not location:
            file = _read_local(Path(directory(_APPLICATION)) / FILE_NAME)
        elif location.startswith(SCHEME):
            file = _fetch_file(location, variable, fetch)
        else:
            file = _read_named(location, variable)
        document = file and parse_yaml(*file, ConfigError)
        if document and file:
            parse_config(document, file[0])
            merged = _merge(merged, document)
            names.append(file[0])
    return parse_config(merged, " with ".join(names))


def parse_config(document: Mapping[str, Any] | None, where: str) -> SageMakerConfig:
    """Parse the defaults for training jobs from a loaded config file; its other sections belong to other programs.

    ``where`` names the file in errors. Subnets are accepted without security groups, because the job may set those.
    """
    if not document:
        return SageMakerConfig()
    whole = _Section(document, where)
    _check_version(whole)
    sagemaker = whole.section("SageMaker")
    job = sagemaker.section("TrainingJob", _TRAINING_JOB)
    vpc = job.section("VpcConfig", {"SecurityGroupIds", "Subnets"})
    modules = sagemaker.section("PythonSDK").section("Modules")
    session = modules.section("Session")
    return SageMakerConfig(
        role=job.text("RoleArn"),
        output_kms_key=job.section("OutputDataConfig", {"KmsKeyId"}).text("KmsKeyId"),
        volume_kms_key=job.section("ResourceConfig", {"VolumeKmsKeyId"}).text("VolumeKmsKeyId"),
        subnets=vpc.texts("Subnets"),
        security_group_ids=vpc.texts("SecurityGroupIds"),
        network_isolation=job.switch("EnableNetworkIsolation"),
        encrypt_traffic=job.switch("EnableInterContainerTrafficEncryption"),
        disable_profiler=job.section("ProfilerConfig", {"DisableProfiler"}).switch("DisableProfiler"),
        debug_hook=modules.section("Estimator").switch("DebugHookConfig"),
        environment=_environment(job),
        tags=_tags(job),
        default_bucket=session.text("DefaultS3Bucket"),
        default_bucket_prefix=session.text("DefaultS3ObjectKeyPrefix"),
    )


_TRAINING_JOB = frozenset(
    {
        "EnableInterContainerTrafficEncryption",
        "EnableNetworkIsolation",
        "Environment",
        "OutputDataConfig",
        "ProfilerConfig",
        "ResourceConfig",
        "RoleArn",
        "Tags",
        "VpcConfig",
    }
)


@dataclass(frozen=True)
class _Section:
    """A mapping within the file. ``path`` is the keys that lead to it, each followed by a dot."""

    content: Any
    where: str
    path: str = ""

    def __post_init__(self) -> None:
        # A sagemaker.Session may contain any mapping, YAML only dicts.
        if not hasattr(self.content, "items"):
            name = self.path.rstrip(".")
            what = f"{self.where}: {f'{name} is' if name else 'the file contains'} {self.content!r}"
            raise ConfigError(what, "write keys and values, or leave it out")

    @property
    def owner(self) -> str:
        """What the keys belong to: the file, and the keys that lead to it."""
        name = self.path.rstrip(".")
        return f"{self.where}: {name or 'the file'}"

    def get(self, key: str) -> Any:
        """Return a key's value or ``None``; raise `ConfigError` for a key in the wrong case, and for ``null``."""
        if key in self.content:
            if self.content[key] is None:
                raise self.error(key, "write a value, or leave the key out")
            return self.content[key]
        for other in self.content:
            if str(other).lower() == key.lower():
                raise ConfigError(f"{self.owner} has no key {other!r}", f"did you mean {key!r}?")
        return None

    def error(self, key: str, advice: str) -> ConfigError:
        # The values of environment variables may be secrets.
        value = self.content[key]
        shown = f"of type {type(value).__name__}" if self.path.endswith("Environment.") else repr(value)
        return ConfigError(f"{self.where}: {self.path}{key} is {shown}", advice)

    def allow(self, known: Collection[str]) -> None:
        """Raise `ConfigError` for any other key."""
        validate_keys(self.owner, self.content, known, error=ConfigError)

    def section(self, key: str, known: Collection[str] | None = None) -> _Section:
        """Return the mapping below a key, an empty one if the key is missing; raise `ConfigError` for unknown keys."""
        value = self.get(key)
        section = _Section({} if value is None else value, self.where, f"{self.path}{key}.")
        if known is not None:
            section.allow(known)
        return section

    def text(self, key: str, *, may_be_empty: bool = False) -> str | None:
        value = self.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.error(key, f"write a string in quotes: '{value}'")
        if not value and not may_be_empty:
            raise self.error(key, "write a string that is not empty, or leave the key out")
        return value

    def switch(self, key: str) -> bool | None:
        value = self.get(key)
        if value is None or isinstance(value, bool):
            return value
        raise self.error(key, "write true or false, without quotes")

    def items(self, key: str) -> list[Any]:
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, (list, tuple)):
            raise self.error(key, "write a list")
        return list(value)

    def texts(self, key: str) -> tuple[str, ...]:
        values = self.items(key)
        if key in self.content and not values:
            raise self.error(key, "name at least one, or leave the key out")
        if not all(isinstance(value, str) and value for value in values):
            raise self.error(key, "write a list of strings")
        return tuple(values)


def _check_version(whole: _Section) -> None:
    version = whole.get("SchemaVersion")
    if version is None:
        raise ConfigError(
            f"{whole.where}: SchemaVersion is missing", f"begin the file with SchemaVersion: '{SCHEMA_VERSION}'"
        )
    if version != SCHEMA_VERSION:
        raise whole.error(
            "SchemaVersion", f"write SchemaVersion: '{SCHEMA_VERSION}', in quotes; this is the only supported version"
        )


def _environment(job: _Section) -> dict[str, str] | None:
    if job.get("Environment") is None:
        return None
    section = job.section("Environment")
    for name in section.content:
        if not isinstance(name, str):
            raise ConfigError(f"{job.where}: {section.path.rstrip('.')} has the key {name!r}", "write it in quotes")
    return {name: section.text(name, may_be_empty=True) or "" for name in section.content}


def _tags(job: _Section) -> tuple[tuple[str, str], ...]:
    tags = []
    for position, item in enumerate(job.items("Tags")):
        tag = _Section(item, job.where, f"{job.path}Tags[{position}].")
        tag.allow({"Key", "Value"})
        key, value = tag.text("Key"), tag.text("Value", may_be_empty=True)
        if key is None or value is None:
            raise ConfigError(f"{job.where}: {tag.path.rstrip('.')} is {item!r}", "write both Key and Value")
        tags.append((key, value))
    return tuple(tags)


def _fetch_file(uri: str, variable: str, fetch: Callable[[str], bytes]) -> tuple[str, bytes]:
    file = uri if uri.endswith((".yaml", ".yml")) else f"{uri.rstrip('/')}/{FILE_NAME}"
    try:
        return file, fetch(file)
    except DataError as error:
        raise ConfigError(f"{variable} is {uri!r}, but no config file can be read there: {error}") from error


def _read_named(location: str, variable: str) -> tuple[str, bytes]:
    path = Path(location)
    file = _read_local(path / FILE_NAME if path.is_dir() else path)
    if file is None:
        problem = f"is a directory without a {FILE_NAME}" if path.is_dir() else "does not exist"
        raise ConfigError(f"{variable} is {location!r}, which {problem}", "name the config file, or unset the variable")
    return file


def _read_local(path: Path) -> tuple[str, bytes] | None:
    """Return a file's name and bytes, or ``None`` if it does not exist."""
    try:
        return str(path), path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"config file {str(path)!r} cannot be read: {error.strerror}", "make it readable") from error


def _merge(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in override.items():
        current = merged.get(key)
        merged[key] = _merge(current, value) if isinstance(current, dict) and isinstance(value, dict) else value
    return merged
