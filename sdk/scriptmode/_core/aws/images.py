"""The URIs of AWS's own images: TensorFlow's by version, those of debugger rules."""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scriptmode._core.aws import image_table
from scriptmode._core.spec.training_job import TrainingJobSpec
from scriptmode._core.spec.versions import version_numbers
from scriptmode._core.text.messages import did_you_mean, warn_caller
from scriptmode.errors import SpecError, invalid

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
#: The rule with AWS's image whose host the caller chooses (SageMaker SDK).
_CALLER_HOST_RULE = "DetailedProfilerProcessingJobConfig"
#: The Python of an estimator of the SDK v1 without ``py_version``; v2 has no default.
_DEFAULT_OF_V1 = "py2"
#: The last TensorFlow whose image has no script mode: its program is not the script, but calls functions in it.
_LEGACY_UNTIL = (1, 10)
_URI = "<account>.dkr.ecr.<region>.amazonaws.com/<repository>:<tag>"


def look_up_image(*, framework_version: str, py_version: str | None, region: str, instance_types: Sequence[str]) -> str:
    """Return the URI of AWS's TensorFlow training image that the SageMaker SDK v2 would choose.

    Among several instance types, a heterogeneous cluster, the first with GPUs decides. Without ``py_version`` the
    TensorFlow release must be there for one Python alone.

    Raises:
        SpecError: AWS has no such image, or, as in v2, an image without script mode; the advice has its URI then.
    """
    releases = image_table.read_releases()
    if framework_version not in releases:
        raise _unknown_version(framework_version, releases)
    family, processor = _hardware(framework_version, instance_types)
    python = _choose_python(framework_version, py_version, releases[framework_version])
    image = releases[framework_version][python]
    if region not in image.registries:
        what = f"is {framework_version!r}, whose images AWS does not have in Region {region!r}"
        near = did_you_mean(region, image.registries, most=0)
        advice = f"{near} Or give image_uri=" if near else "give image_uri="
        raise invalid("framework_version", what, advice)
    tag = f"{framework_version}-{processor}-{python}"
    if family == "p4d" and tag in _P4D_ENDINGS:
        tag = f"{tag}-{_P4D_ENDINGS[tag]}"
    domain = _find_dns_suffix(region)
    if domain is None:
        raise invalid("region", f"is {region!r}, which botocore does not know", "upgrade boto3, or give image_uri=")
    uri = f"{image.registries[region]}.dkr.ecr.{region}.{domain}/{image.repository}:{tag}"
    if _is_legacy(framework_version):
        what = f"is {framework_version!r}, whose image runs scripts in SageMaker's legacy mode alone"
        raise invalid("framework_version", what, f"give a newer one; or image_uri={uri!r} and model_dir=False")
    return uri


def with_rule_images(spec: TrainingJobSpec, region: str) -> TrainingJobSpec:
    """Replace the default image of the SageMaker SDK's rules by the Region's."""

    def named(rule: Mapping[str, Any]) -> Mapping[str, Any]:
        source = rule.get("RuleEvaluatorImage")
        # Else the SDK's object, whose image is the default one.
        if source is None or isinstance(source, str):
            return rule
        fields = {**rule, "RuleEvaluatorImage": look_up_rule_image(region, f", and rule {source.name!r} names none")}
        if not str(rule["RuleConfigurationName"]).startswith(_CALLER_HOST_RULE):
            # AWS's own rules bring their host along (SageMaker SDK).
            fields = {key: value for key, value in fields.items() if key not in ("InstanceType", "VolumeSizeInGB")}
        return fields

    return replace(spec, monitoring=spec.monitoring.with_rules(named))


def look_up_rule_image(region: str, reason: str = "") -> str:
    """Return the URI of AWS's image of the debugger's rules; raise `SpecError` where there is none."""
    image, domain = image_table.own_table().rules, _find_dns_suffix(region)
    if region not in image.registries or domain is None:
        what = f"AWS has no image of the debugger's rules in Region {region!r}{reason}"
        raise SpecError(what, "leave the rule out, or give it an image_uri of its own", argument="rules")
    return f"{image.registries[region]}.dkr.ecr.{region}.{domain}/{image.repository}:latest"


def _find_dns_suffix(region: str) -> str | None:
    """Return the domain of a Region's services, also of one newer than the installed boto3; None without any."""
    for partition in _partitions():
        if region in partition["regions"] or re.fullmatch(partition["regionRegex"], region):
            return str(partition["outputs"]["dnsSuffix"])
    return None


@functools.lru_cache(maxsize=1)
def _partitions() -> list[dict[str, Any]]:
    """Return the partitions of botocore's data; its own reader would import it, which takes longer than a plan."""
    spec = importlib.util.find_spec("botocore")
    places = (spec.submodule_search_locations or ()) if spec else ()
    files = (Path(place, "data", "partitions.json") for place in places)
    return [partition for file in files for partition in json.loads(file.read_bytes())["partitions"]]


def _unknown_version(version: str, known: Iterable[str]) -> SpecError:
    minor, what = _minor(version), f"is {version!r}, of which no training image of AWS is known"
    near = sorted((other for other in known if _minor(other) == minor), key=version_numbers)
    if near:
        return invalid("framework_version", what, f"give {' or '.join(map(repr, near))}, or image_uri={_URI!r}")
    minors = {_minor(other) for other in known if not _is_legacy(other)}
    listed = ", ".join(sorted(minors, key=version_numbers, reverse=True))
    newer = f"for what AWS added since {image_table.own_table().date} install sagemaker-core, or upgrade it"
    return invalid("framework_version", what, f"give one of {listed}; {newer}; or name an image: image_uri={_URI!r}")


def _is_legacy(version: str) -> bool:
    return version_numbers(version)[:2] <= _LEGACY_UNTIL


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _choose_python(version: str, python: str | None, known: Collection[str]) -> str:
    if python is None and len(known) == 1:
        return next(iter(known))
    if python is None and _DEFAULT_OF_V1 in known:
        others = " or ".join(repr(other) for other in known if other != _DEFAULT_OF_V1)
        warn_caller(
            f"py_version is not given: TensorFlow {version} runs with {_DEFAULT_OF_V1!r}, the default of SageMaker SDK "
            f"v1; give py_version={others} for Python 3"
        )
        return _DEFAULT_OF_V1
    if python is None or python not in known:
        what = f"is {python!r}, but AWS has no image of TensorFlow {version} with that Python"
        if python is None:
            what = f"is not given, but AWS has images of TensorFlow {version} for several"
        raise invalid("py_version", what, f"give {' or '.join(map(repr, known))}")
    return python


def _hardware(version: str, instance_types: Sequence[str]) -> tuple[str, str]:
    """Return the family of the instance type that decides, "" on this machine, and its processor: cpu or gpu."""
    families = [_family(instance_type) for instance_type in instance_types]
    deciding, family = next(
        (pair for pair in zip(instance_types, families) if _GPU_FAMILY.match(pair[1])), (instance_types[0], families[0])
    )
    if not family:
        return "", "cpu" if deciding == "local" else "gpu"
    if _WITHOUT_IMAGE.match(family) or (family == "p2" and version_numbers(version) >= _WITHOUT_P2):
        what = f"is {deciding!r}, for which AWS has no training image with TensorFlow {version}"
        raise invalid("instance_type", what, "give another type, or image_uri=")
    return family, "gpu" if _GPU_FAMILY.match(family) else "cpu"


def _family(instance_type: str) -> str:
    """Return the family of an instance type of Amazon SageMaker, "" for a host of this machine."""
    match = _FAMILY.fullmatch(instance_type)
    if match is None and not instance_type.startswith("local"):
        raise invalid("instance_type", f"is {instance_type!r}", "give one such as 'ml.m5.xlarge'")
    return match[1] if match else ""
