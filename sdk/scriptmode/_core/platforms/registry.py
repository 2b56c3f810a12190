"""The type of a training platform, and the choice of one by instance type or by name; `job_platforms` finds a job's.

A platform gets a job as a value of `scriptmode._core.spec`; lists, tuning jobs and described responses have SageMaker's
shapes. This module alone chooses platforms by the names "local" and "sagemaker".
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Union

from scriptmode._core.spec.hosts import LOCAL_PROCESS, HostKind, instance_kind
from scriptmode.errors import SpecError, invalid

if TYPE_CHECKING:
    from scriptmode._core.platforms.sagemaker import SageMakerPlatform
    from scriptmode_local import LocalPlatform

#: Both have the methods that the SDK calls, which raise only errors of `scriptmode.errors`.
Platform = Union["SageMakerPlatform", "LocalPlatform"]
#: A family and a size. The list of those that exist changes often: one that botocore does not know may be new.
_SAGEMAKER_TYPE = r"ml\.[a-z0-9-]+\.[a-z0-9-]+"


def for_instance_types(instance_types: tuple[str, ...], session: object = None) -> Platform:
    """Return the platform for a job's instance types; raise `SpecError` for types that no platform runs together.

    ``session`` is the boto3 or ``sagemaker`` session that the estimator was given, or ``None``.
    """
    kinds = {_kind(instance_type) for instance_type in instance_types}
    if len(kinds) > 1:
        what = f"instance types {', '.join(map(repr, instance_types))} need different kinds of hosts"
        raise SpecError(what, "use one", argument="instance_type")
    kind = kinds.pop()
    if kind.has_local_jobs:
        # Hosts of this machine have boto3's own settings for S3.
        has_own_settings = not getattr(session, "local_mode", False) and getattr(session, "uses_own_settings", True)
        if session is not None and has_own_settings:
            raise invalid(
                "sagemaker_session",
                f"is {session!r}, but instance_type {instance_types[0]!r} runs on {kind.system}, "
                "with boto3's own settings for S3",
                "leave sagemaker_session out",
            )
        return local_platform(kind)
    return sagemaker_platform(session)


def sagemaker_platform(session: object) -> Platform:
    """Return Amazon SageMaker for a session as the estimators take it; ``None`` stands for boto3's own settings."""
    from scriptmode._core.platforms.sagemaker import SageMakerPlatform

    return SageMakerPlatform(session)


def session_platform(session: object) -> Platform:
    """Return this machine for a session of local mode, else Amazon SageMaker as `sagemaker_platform` does."""
    return local_platform() if getattr(session, "local_mode", False) else sagemaker_platform(session)


def resolve_platform(platform: Platform | str | None) -> Platform:
    """Return the platform for ``"local"`` (or ``None``) or ``"sagemaker"``; return a platform object as it is."""
    if platform is None or platform == "local":
        return local_platform()
    if platform == "sagemaker":
        return sagemaker_platform(None)
    if isinstance(platform, (str, type)) or not hasattr(platform, "describe"):
        advice = "give 'local', 'sagemaker' or a platform object; a server's URL is AWS_ENDPOINT_URL"
        raise invalid("platform", f"is {platform!r}", advice)
    return platform


def explicit_platform(platform: Platform | str | None, session: object, what: str = "to train") -> Platform | None:
    """Return the platform that the arguments name, ``None`` where the instance type or the job decides."""
    if platform is not None and session is not None:
        raise invalid("platform", f"and sagemaker_session both say where {what}", "keep one")
    return None if platform is None else resolve_platform(platform)


def require_local_jobs() -> None:
    """Raise `SpecError` on another operating system than Linux, `MissingPackageError` without ``scriptmode_local``."""
    if not sys.platform.startswith("linux"):
        raise SpecError(
            "jobs on this machine need Linux, because their processes are supervised through /proc; this machine runs "
            f"{sys.platform!r}",
            "train on Amazon SageMaker with an 'ml.*' instance_type, list its jobs with platform='sagemaker' "
            "(scriptmode list --platform sagemaker)",
        )
    require_local_package("a job on this machine", "use Amazon SageMaker, with platform='sagemaker' or a session")


def require_local_package(user: str, otherwise: str) -> None:
    """Raise `MissingPackageError` where ``scriptmode`` is installed without the service of this machine."""
    if find_spec("scriptmode_local") is None:
        from scriptmode._core.machine.installation import AGAIN, install_command, missing_package

        raise missing_package(user, "scriptmode_local", command=install_command(options=AGAIN), otherwise=otherwise)


def local_platform(kind: HostKind | None = None) -> LocalPlatform:
    """Return the platform of a kind of local hosts; raises what `require_local_jobs` raises."""
    require_local_jobs()
    from pkgutil import resolve_name

    platform: LocalPlatform = resolve_name((kind or instance_kind(LOCAL_PROCESS)).platform)()
    return platform


def _kind(instance_type: str) -> HostKind:
    kind = instance_kind(instance_type)
    name, colon, detail = instance_type.partition(":")
    if kind.has_local_jobs and colon and (not detail or (kind.takes_gpus and not re.fullmatch("gpu=[0-9]+", detail))):
        form = f"{name}:{'gpu=N' if kind.takes_gpus else kind.suffix}"
        raise invalid("instance_type", f"is {instance_type!r}", f"write {name!r} or {form!r}")
    if kind.has_local_jobs:
        return kind
    from scriptmode._core.request.service_model import REQUEST_SHAPE, shapes

    amazons = shapes(REQUEST_SHAPE)["TrainingInstanceType"]["enum"]
    if instance_type in amazons:
        return kind
    from scriptmode._core.spec import instance_types
    from scriptmode._core.text.messages import warn_caller

    similar = instance_types.suggest(instance_type, *amazons)
    if re.fullmatch(_SAGEMAKER_TYPE, instance_type):
        if similar:
            warn_caller(f"instance_type {instance_type!r} is not one that the installed botocore knows; {similar}")
        return kind
    forms = ", ".join(instance_types.local_forms())
    raise invalid(
        "instance_type",
        f"{instance_type!r} is neither one of {forms} nor, as 'ml.p3.2xlarge', Amazon's",
        similar or "use one of them, or install the package of its engine",
    )
