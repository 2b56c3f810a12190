"""AWS's own images, as an installed ``sagemaker`` package knows them: no table of accounts is kept here."""

from __future__ import annotations

import importlib
import logging
import re
import sys
import warnings
from contextlib import contextmanager
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from scriptmode.errors import SpecError
from scriptmode.installation import install_command
from scriptmode.spec.monitoring import DEFAULT_RULE_IMAGE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Families of GPU types begin with g or p, as the SageMaker SDK tells them apart.
_GPU_TYPE = re.compile(r"ml[._][gp]")
#: What the SageMaker SDK announces while it is imported: the files it read, the end of its version 2.
_TALKATIVE = ("sagemaker.config", "sagemaker.deprecations")


def look_up_image(*, framework_version: str, py_version: str | None, region: str, instance_types: Sequence[str]) -> str:
    """Return the URI of AWS's TensorFlow training image that the SageMaker SDK would choose.

    Among several instance types, a heterogeneous cluster, the first with GPUs decides. Without ``py_version`` the
    TensorFlow release must be there for one Python alone. Raises `SpecError` for what AWS has no image for, and where
    no ``sagemaker`` package (version 2 or 3) can be asked.
    """
    instance_type = next((each for each in instance_types if _GPU_TYPE.match(each)), instance_types[0])
    image_uris = _image_uris(f"framework_version {framework_version!r}")
    try:
        uri = image_uris.retrieve(
            "tensorflow",
            region=region,
            version=framework_version,
            py_version=py_version,
            instance_type=instance_type,
            image_scope="training",
        )
    # Another program's code: whatever it raises leaves as ours.
    except Exception as error:
        raise SpecError(
            f"no image is known for framework_version {framework_version!r}, py_version {py_version!r}, "
            f"instance type {instance_type!r} in Region {region!r}: {_text_of(error)}",
            argument="framework_version",
            advice="correct them, or give image_uri=",
        ) from error
    return str(uri)


def debugger_rule_image(rule: Any, region: str) -> str:
    """Return the image that evaluates a debugger rule of the SageMaker SDK: the rule's, or AWS's in the Region.

    For AWS's image the SDK also takes a rule's ``instance_type`` and ``volume_size_in_gb`` away, unless the rule's name
    begins with ``DetailedProfilerProcessingJobConfig``.
    """
    if rule.image_uri != DEFAULT_RULE_IMAGE:
        return str(rule.image_uri)
    for kind in type(rule).__mro__:
        find = getattr(sys.modules.get(kind.__module__), "get_rule_container_image_uri", None)
        if find is None:
            continue
        try:
            return str(find(rule.name, region))
        except Exception as error:
            raise SpecError(
                f"no image is known for debugger rule {rule.name!r} in Region {region!r}: {_text_of(error)}",
                argument="rules",
                advice="leave the rule out, or give it an image_uri of its own",
            ) from error
    raise SpecError(
        f"debugger rule {rule!r} names no image, and its class {type(rule).__qualname__} is not the SageMaker SDK's",
        argument="rules",
        advice="make it with sagemaker.debugger.Rule, or give it an image_uri",
    )


def _image_uris(wanted: str) -> Any:
    """Import the module of ``sagemaker`` that knows the images: version 2 and 3 keep it in different places."""
    try:
        with _undisturbed():
            package = importlib.import_module("sagemaker")
            # Looked for by file: version 3 answers an import of version 2's modules with warnings.
            if PathFinder.find_spec("sagemaker.image_uris", package.__path__):
                return importlib.import_module("sagemaker.image_uris")
            if PathFinder.find_spec("sagemaker.core", package.__path__):
                return importlib.import_module("sagemaker.core.image_uris")
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "sagemaker":
            raise SpecError(
                f"{wanted} needs the sagemaker package, which knows AWS's images",
                argument="image_uri",
                advice=f"give image_uri=, or {install_command('sagemaker')}",
            ) from error
        raise SpecError(
            f"{wanted} needs the sagemaker package, which is installed but cannot be imported: {_text_of(error)}",
            argument="image_uri",
            advice=f"give image_uri=, or repair it, for example in a new environment: {install_command('sagemaker')}",
        ) from error
    raise SpecError(
        f"{wanted} needs the sagemaker package in version 2 or 3, but 'sagemaker' is {list(package.__path__)}, "
        "which is neither",
        argument="image_uri",
        advice=f"give image_uri=, or {install_command('sagemaker')}",
    )


def _text_of(error: Exception) -> str:
    text = str(error).rstrip(" .")
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Import without the announcements, and keep ``sys.excepthook``, which sagemaker's version 2 replaces."""
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    hook = sys.excepthook
    for logger in loggers:
        logger.addFilter(_is_error)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.excepthook = hook
        for logger in loggers:
            logger.removeFilter(_is_error)


def _is_error(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.ERROR
