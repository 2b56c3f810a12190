"""The schema of a SageMaker config file: the place of each default of training jobs, and what its value must be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scriptmode._core.text.messages import validate_keys
from scriptmode.errors import ConfigError

SCHEMA_VERSION = "1.0"


def parse_values(document: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the values of `SageMakerConfig` by its fields; other sections of the file belong to other programs.

    ``where`` names the file in errors. Subnets are accepted without security groups, because the job may set those.
    """
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
    return values


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
