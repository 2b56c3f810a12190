"""The SageMaker config file: defaults of an administrator and a user for every training job of this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode._core.aws.s3_uris import SCHEME
from scriptmode._core.text.messages import validate_keys
from scriptmode.errors import ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

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

    merged: dict[str, object] = {}
    names = []
    for variable, directory in ((ADMIN_OVERRIDE, site_config_dir), (USER_OVERRIDE, user_config_dir)):
        location = environ.get(variable)
        if not location:
            file = _read_local(Path(directory(_APPLICATION)) / FILE_NAME)
        elif location.startswith(SCHEME):
            file = _fetch_file(location, variable, fetch)
        else:
            file = _read_named(location, variable)
        if file is None:
            continue
        from scriptmode._core.machine.yaml_files import parse_yaml

        if document := parse_yaml(*file, ConfigError):
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
    if (version := _find(document, "SchemaVersion", where)) != SCHEMA_VERSION:
        advice = f"begin the file with SchemaVersion: '{SCHEMA_VERSION}', in quotes"
        raise ConfigError(f"{where}: SchemaVersion is {'missing' if version is None else repr(version)}", advice)
    values: dict[str, Any] = {}
    for name, (path, is_right, advice) in _FIELDS.items():
        value = _find(document, path, where)
        if value is None:
            continue
        if not is_right(value):
            # The values of environment variables may be secrets.
            shown = f"of type {type(value).__name__}" if path == _ENVIRONMENT else repr(value)
            raise ConfigError(f"{where}: {path} is {shown}", advice)
        values[name] = tuple(value) if isinstance(value, list) else value
    values["tags"] = tuple((tag["Key"], tag["Value"]) for tag in values.get("tags", ()))
    return SageMakerConfig(**values)


def _find(document: Any, path: str, where: str) -> Any:
    """Return the value at a path, ``None`` if it is missing; raise `ConfigError` for what leads to it and is wrong."""
    import difflib

    value, above = document, ""
    for key in path.split("."):
        owner = f"{where}: {above or 'the file'}"
        # A sagemaker.Session may contain any mapping, YAML only dicts.
        if not hasattr(value, "items"):
            raise ConfigError(f"{owner} is {value!r}", "write keys and values, or leave it out")
        known = {
            field[len(above) + 1 :].partition(".")[0] for field, *_ in _FIELDS.values() if field.startswith(f"{above}.")
        }
        # Other sections have keys of other programs; only this one can be misspelt.
        keys = value if above.startswith(_JOB) else difflib.get_close_matches(key, map(str, value), cutoff=0.65)
        validate_keys(owner, keys, known or {key}, error=ConfigError)
        if key not in value:
            return None
        value, above = value[key], f"{above}.{key}".lstrip(".")
        if value is None:
            raise ConfigError(f"{where}: {above} is None", "write a value, or leave the key out")
    return value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _are_texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_text, value))


def _is_environment(value: Any) -> bool:
    return hasattr(value, "items") and all(isinstance(text, str) for pair in value.items() for text in pair)


def _are_tags(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(
        hasattr(tag, "keys")
        and tag.keys() == {"Key", "Value"}
        and _is_text(tag["Key"])
        and isinstance(tag["Value"], str)
        for tag in value
    )


_Rule = tuple[Callable[[Any], bool], str]
_TEXT: _Rule = (_is_text, "write a string that is not empty, in quotes, or leave the key out")
_TEXTS: _Rule = (_are_texts, "write a list of strings, or leave the key out")
_SWITCH: _Rule = (lambda value: isinstance(value, bool), "write true or false, without quotes")
_JOB = "SageMaker.TrainingJob"
_MODULES = "SageMaker.PythonSDK.Modules"
_ENVIRONMENT = f"{_JOB}.Environment"
#: The place of each default, what its value must be, and the advice for another one.
_FIELDS: dict[str, tuple[str, Callable[[Any], bool], str]] = {
    "role": (f"{_JOB}.RoleArn", *_TEXT),
    "output_kms_key": (f"{_JOB}.OutputDataConfig.KmsKeyId", *_TEXT),
    "volume_kms_key": (f"{_JOB}.ResourceConfig.VolumeKmsKeyId", *_TEXT),
    "subnets": (f"{_JOB}.VpcConfig.Subnets", *_TEXTS),
    "security_group_ids": (f"{_JOB}.VpcConfig.SecurityGroupIds", *_TEXTS),
    "network_isolation": (f"{_JOB}.EnableNetworkIsolation", *_SWITCH),
    "encrypt_traffic": (f"{_JOB}.EnableInterContainerTrafficEncryption", *_SWITCH),
    "disable_profiler": (f"{_JOB}.ProfilerConfig.DisableProfiler", *_SWITCH),
    "debug_hook": (f"{_MODULES}.Estimator.DebugHookConfig", *_SWITCH),
    "environment": (_ENVIRONMENT, _is_environment, "write the names and the values as strings, in quotes"),
    "tags": (f"{_JOB}.Tags", _are_tags, "write a list of tags, each with a Key and a Value: strings, in quotes"),
    "default_bucket": (f"{_MODULES}.Session.DefaultS3Bucket", *_TEXT),
    "default_bucket_prefix": (f"{_MODULES}.Session.DefaultS3ObjectKeyPrefix", *_TEXT),
}


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


def _merge(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, object]:
    merged = dict(base)
    for key, value in override.items():
        current = merged.get(key)
        merged[key] = _merge(current, value) if isinstance(current, dict) and isinstance(value, dict) else value
    return merged
