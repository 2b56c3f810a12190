"""AWS's own images, as an installed ``sagemaker`` package lists them: no table of accounts is kept here.

Its JSON files are read; the package is not imported, which would take two seconds of CPU time.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode.aws.regions import find_dns_suffix
from scriptmode.errors import SpecError, invalid
from scriptmode.installation import install_command
from scriptmode.messages import suggest_similar
from scriptmode.spec.monitoring import DEFAULT_RULE_IMAGE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

#: Where the package has the table of TensorFlow's images: version 2, version 3.
_TABLES = ("image_uri_config/tensorflow.json", "core/image_uri_config/tensorflow.json")
#: The family of an instance type, ``ml.<family>.<size>`` or ``ml_<family>``, as the SageMaker SDK reads it.
_FAMILY = re.compile(r"ml[._]([a-z\d-]+)\.?\w*")
#: Families without a TensorFlow image that trains: AWS's own chips, and ARM processors (m6g, c7gn).
_WITHOUT_IMAGE = re.compile(r"trn|inf|[a-z]+\d+g[a-z]*$")
#: Families of GPU types begin with g or p, as the SageMaker SDK tells them apart.
_GPU_FAMILY = re.compile(r"[gp]")
#: The first TensorFlow whose image does not support P2 hosts (SageMaker SDK).
_WITHOUT_P2 = (2, 12)
#: Endings of the tags for P4d hosts, whose GPUs need a newer CUDA than these versions' images have (SageMaker SDK).
_P4D_ENDINGS = {
    "1.15-gpu-py37": "cu110-ubuntu18.04-v8",
    "1.15.4-gpu-py37": "cu110-ubuntu18.04",
    "1.15.5-gpu-py37": "cu110-ubuntu18.04",
    "2.3-gpu-py37": "cu110-ubuntu18.04-v3",
    "2.3.1-gpu-py37": "cu110-ubuntu18.04",
    "2.3.2-gpu-py37": "cu110-ubuntu18.04",
}
_NAMED = 12


class _Image(NamedTuple):
    """The images of a TensorFlow release with one Python: the account of each Region's registry, the repository."""

    registries: dict[str, str]
    repository: str


def look_up_image(*, framework_version: str, py_version: str | None, region: str, instance_types: Sequence[str]) -> str:
    """Return the URI of AWS's TensorFlow training image that the SageMaker SDK would choose.

    Among several instance types, a heterogeneous cluster, the first with GPUs decides. Without ``py_version`` the
    TensorFlow release must be there for one Python alone. Raises `SpecError` for what AWS has no image for, and where
    no ``sagemaker`` package (version 2 or 3) is installed.
    """
    releases = _read_table(find_table(f"framework_version {framework_version!r}"))
    if framework_version not in releases:
        raise _unknown_version(framework_version, releases)
    family, processor = _hardware(framework_version, instance_types)
    python = _choose_python(framework_version, py_version, releases[framework_version])
    image = releases[framework_version][python]
    if region not in image.registries:
        what = f"is {framework_version!r}, whose images AWS does not have in Region {region!r}"
        near = suggest_similar(region, image.registries)
        advice = f"{near} Or give image_uri=" if near else "give image_uri="
        raise invalid("framework_version", what, advice)
    tag = f"{framework_version}-{processor}-{python}"
    if family == "p4d" and tag in _P4D_ENDINGS:
        tag = f"{tag}-{_P4D_ENDINGS[tag]}"
    domain = find_dns_suffix(region)
    if domain is None:
        raise invalid("region", f"is {region!r}, which botocore does not know", "upgrade boto3, or give image_uri=")
    return f"{image.registries[region]}.dkr.ecr.{region}.{domain}/{image.repository}:{tag}"


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


def find_table(wanted: str) -> Path:
    """Return the path of the installed package's table of TensorFlow's images."""
    # Finds a package without importing it, also where only a part of version 3 (sagemaker-core) is installed.
    spec = importlib.util.find_spec("sagemaker")
    if spec is None:
        raise SpecError(
            f"{wanted} needs the sagemaker package, which knows AWS's images",
            argument="image_uri",
            advice=f"give image_uri=, or {install_command('sagemaker')}",
        )
    places = [Path(place) for place in spec.submodule_search_locations or ()]
    for path in (place / name for name in _TABLES for place in places):
        if path.is_file():
            return path
    where = ", ".join(map(str, places)) or spec.origin
    raise SpecError(
        f"{wanted} needs the sagemaker package in version 2 or 3, but 'sagemaker' in {where} is neither",
        argument="image_uri",
        advice=f"give image_uri=, or {install_command('sagemaker')}",
    )


@functools.lru_cache(maxsize=4)
def _read_table(path: Path) -> dict[str, dict[str, _Image]]:
    """Return the images that train, by the version of TensorFlow (``2.13`` is also ``2.13.0``) and of Python."""
    try:
        table = json.loads(path.read_bytes())["training"]
        releases = {version: _by_python(entry) for version, entry in table["versions"].items()}
        return {**releases, **{short: releases[release] for short, release in table["version_aliases"].items()}}
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise SpecError(
            f"framework_version needs the sagemaker package, whose table of AWS's images cannot be read: {path}: "
            f"{_text_of(error)}",
            argument="image_uri",
            advice=f"give image_uri=, or repair it, for example in a new environment: {install_command('sagemaker')}",
        ) from error


def _by_python(entry: dict[str, Any]) -> dict[str, _Image]:
    """Return a release's images: the table has one entry for all versions of Python, or one for each."""
    each = dict.fromkeys(entry["py_versions"], entry) if "repository" in entry else entry
    return {python: _Image(its["registries"], its["repository"]) for python, its in each.items()}


def _unknown_version(version: str, known: Iterable[str]) -> SpecError:
    newest = sorted({".".join(each.split(".")[:2]) for each in known}, key=_numbers, reverse=True)
    what = f"is {version!r}, which is not among AWS's training images in the installed sagemaker package"
    listed = f"{', '.join(newest[:_NAMED])}{' and older' if len(newest) > _NAMED else ''}"
    return invalid("framework_version", what, f"give one of them ({listed}), upgrade the package, or give image_uri=")


def _choose_python(version: str, python: str | None, known: Collection[str]) -> str:
    if python is None and len(known) == 1:
        return next(iter(known))
    if python is None or python not in known:
        what = f"is {python!r}, but AWS has no image of TensorFlow {version} with that Python"
        if python is None:
            what = f"is not given, but AWS has images of TensorFlow {version} for several"
        raise invalid("py_version", what, f"give {' or '.join(map(repr, known))}")
    return python


def _hardware(version: str, instance_types: Sequence[str]) -> tuple[str, str]:
    """Return the family of the instance type that decides, "" on this machine, and its processor: cpu or gpu."""
    families = [_family(each) for each in instance_types]
    deciding, family = next(
        (pair for pair in zip(instance_types, families) if _GPU_FAMILY.match(pair[1])), (instance_types[0], families[0])
    )
    if not family:
        return "", "cpu" if deciding == "local" else "gpu"
    if _WITHOUT_IMAGE.match(family) or (family == "p2" and _numbers(version) >= _WITHOUT_P2):
        what = f"is {deciding!r}, for which AWS has no training image with TensorFlow {version}"
        raise invalid("instance_type", what, "give another type, or image_uri=")
    return family, "gpu" if _GPU_FAMILY.match(family) else "cpu"


def _family(instance_type: str) -> str:
    """Return the family of an instance type of Amazon SageMaker, "" for a host of this machine."""
    found = _FAMILY.fullmatch(instance_type)
    if found is None and not instance_type.startswith("local"):
        raise invalid("instance_type", f"is {instance_type!r}", "give one such as 'ml.m5.xlarge'")
    return found[1] if found else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _text_of(error: Exception) -> str:
    text = str(error).rstrip(" .")
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"
