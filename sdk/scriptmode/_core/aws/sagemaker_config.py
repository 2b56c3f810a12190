"""The SageMaker config file: defaults of an administrator and a user for every training job of this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scriptmode._core.aws.s3_uris import SCHEME
from scriptmode.errors import ConfigError, DataError

FILE_NAME = "config.yaml"
#: Environment variables with other locations of the files (SageMaker SDK, "Configuring and using defaults").
ADMIN_OVERRIDE, USER_OVERRIDE = "SAGEMAKER_ADMIN_CONFIG_OVERRIDE", "SAGEMAKER_USER_CONFIG_OVERRIDE"
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

        if document := parse_yaml(*file):
            parse_config(document, file[0])
            merged = _merge(merged, document)
            names.append(file[0])
    return parse_config(merged, " with ".join(names))


def parse_config(document: Mapping[str, Any] | None, where: str) -> SageMakerConfig:
    """Parse the defaults for training jobs from a loaded config file; ``where`` names the file in errors."""
    if not document:
        return SageMakerConfig()
    from scriptmode._core.aws.config_schema import parse_values

    return SageMakerConfig(**parse_values(document, where))


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
