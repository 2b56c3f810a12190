"""Defaults of a job on Amazon SageMaker: settings of the config file, then those of this project."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from scriptmode._core.aws.s3_uris import is_in_local_bucket, is_on_this_machine
from scriptmode._core.aws.sagemaker_config import SageMakerConfig
from scriptmode._core.aws.session import Connection, default_bucket_name
from scriptmode._core.request.render import names_algorithm
from scriptmode._core.spec.hosts import LOCAL_ACCOUNT
from scriptmode._core.spec.inputs import FileSystemInput
from scriptmode._core.spec.names import account_of_role
from scriptmode._core.spec.training_job import Network, TrainingJobSpec
from scriptmode.errors import PlatformError, SpecError, invalid

#: Prefix of source archives below the output path; the names of archives contain their digest.
SOURCE_PREFIX = "scriptmode/source"
#: Families with local storage, to which the service attaches no volume to encrypt (SageMaker SDK), beside those with
#: a "d" in their name.
_LOCAL_STORAGE = ("g5", "g6", "p5", "trn1")
_T = TypeVar("_T")


def check_locations(spec: TrainingJobSpec) -> None:
    """Raise `SpecError` for a job that Amazon SageMaker has no data or image for; makes no call."""
    for what, uri in spec.locations.items():
        if is_on_this_machine(uri):
            raise SpecError(
                f"{what} is {uri!r}, a location on this machine",
                "Amazon SageMaker needs it in S3: "
                + ("upload it with AWS credentials" if is_in_local_bucket(uri) else "give an s3:// URI"),
                argument="inputs" if what.startswith("channel") else what,
            )
    algorithm = spec.algorithm
    if algorithm.image_uri is None and algorithm.framework_version is None and not names_algorithm(spec):
        raise invalid(
            "image_uri",
            "is missing",
            f"hosts of type {spec.resources.types[0]!r} start from an image in Amazon ECR. Give "
            "its URI, or framework_version and py_version to have AWS's TensorFlow image looked up",
        )


def _is_of_serve(connection: Connection) -> bool:
    """Return whether the account is that of `scriptmode serve`, which has the role of jobs on this machine."""
    with suppress(PlatformError):
        return bool(connection.caller_identity()["Account"] == LOCAL_ACCOUNT)
    return False


def apply_defaults(spec: TrainingJobSpec, config: SageMakerConfig, connection: Connection) -> TrainingJobSpec:
    """Return the spec with defaults; raises `SpecError` without a role, or without the VPC that the data needs."""
    config = SageMakerConfig() if spec.ignore_config_defaults else config
    role = spec.role or config.role
    if role is None:
        step = "give the name or ARN of the IAM role of the training job, or set SageMaker.TrainingJob.RoleArn"
        raise invalid("role", "is missing", f"{step} in the SageMaker config file")
    if account_of_role(role) == LOCAL_ACCOUNT and not _is_of_serve(connection):
        what = f"is {role!r}, which is the role of jobs on this machine (get_execution_role() without credentials)"
        raise invalid("role", what, "give the name or ARN of an IAM role")
    network = _network(spec, config)
    if account_of_role(role) is None:
        from scriptmode._core.aws.iam_role import resolve_role_arn

        role = resolve_role_arn(role, connection)
    given = spec.monitoring
    hook = config.debug_hook if given.debug_hook is None else given.debug_hook
    profiler_off = _first_given(given.profiler_off, None if given.profiler else config.disable_profiler)
    completed = replace(
        spec,
        role=role,
        network=network,
        environment=_first_given(spec.environment, config.environment),
        # A key of the caller's own keeps the caller's value.
        tags=(*spec.tags, *(tag for tag in config.tags if tag[0] not in dict(spec.tags))),
        resources=replace(spec.resources, volume_kms_key=_volume_key(spec, config)),
        monitoring=replace(given, debug_hook=hook, profiler_off=profiler_off),
        algorithm=replace(spec.algorithm, image_uri=_image(spec, connection)),
    )
    if "tensorflow" in (completed.algorithm.image_uri or ""):  # as in the names of AWS's images
        from scriptmode._core.aws import image_support

        image_support.check_aws_image(completed)
    path = spec.output.path or _default_path(role, config, connection)
    location = spec.output.code_location or f"{path.rstrip('/')}/{SOURCE_PREFIX}"
    key = spec.output.kms_key or config.output_kms_key
    completed = replace(completed, output=replace(spec.output, path=path, kms_key=key, code_location=location))
    if not (spec.monitoring.debug_rules or spec.monitoring.profiler_rules):
        return completed
    from scriptmode._core.aws import images

    return images.with_rule_images(completed, connection.region)


def _network(spec: TrainingJobSpec, config: SageMakerConfig) -> Network:
    given = spec.network
    network = replace(
        given,
        subnets=given.subnets or config.subnets,
        security_group_ids=given.security_group_ids or config.security_group_ids,
        isolation=_first_given(given.isolation, config.network_isolation),
        encrypt_traffic=_first_given(given.encrypt_traffic, config.encrypt_traffic),
    )
    if not network.subnets and any(isinstance(channel.source, FileSystemInput) for channel in spec.channels):
        raise SpecError(
            "a FileSystemInput is reached through a VPC", "give subnets and security_group_ids", argument="subnets"
        )
    return network


def default_bucket_of_role(role: str, region: str) -> str | None:
    """Return the default bucket of a role's account; ``None`` for a text that is not a role's ARN."""
    account = account_of_role(role)
    return default_bucket_name(region, account) if account else None


def _default_path(role: str, config: SageMakerConfig, connection: Connection) -> str:
    bucket = connection.default_bucket or config.default_bucket or default_bucket_of_role(role, connection.region)
    prefix = connection.default_bucket_prefix or config.default_bucket_prefix
    return f"s3://{bucket}/{prefix.strip('/')}" if prefix else f"s3://{bucket}"


def _first_given(value: _T | None, default: _T | None) -> _T | None:
    return default if value is None else value


def _volume_key(spec: TrainingJobSpec, config: SageMakerConfig) -> str | None:
    families = [name.split(".")[1] if name.count(".") > 1 else "" for name in spec.resources.types]
    has_volume = any("d" not in family and not family.startswith(_LOCAL_STORAGE) for family in families)
    return spec.resources.volume_kms_key or (config.volume_kms_key if has_volume else None)


def _image(spec: TrainingJobSpec, connection: Connection) -> str | None:
    algorithm = spec.algorithm
    if algorithm.image_uri is not None or algorithm.framework_version is None:
        return algorithm.image_uri
    from scriptmode._core.aws import images

    return images.look_up_image(
        framework_version=algorithm.framework_version,
        py_version=algorithm.py_version,
        region=connection.region,
        instance_types=spec.resources.types,
    )
