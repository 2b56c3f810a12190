"""Quotas of the instances that training jobs use at once, as those of an AWS account. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from scriptmode._core.request.service_model import REQUEST_SHAPE, shapes
from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import invalid
from scriptmode_serve._operations.aws_json import ApiError


def parse_quotas(texts: Mapping[str, str]) -> dict[str, int]:
    """Return the most instances by instance type; raise `SpecError` for another type, and for no whole number."""
    known = shapes(REQUEST_SHAPE)["TrainingInstanceType"]["enum"]
    for kind, text in texts.items():
        if kind not in known or not (text.isascii() and text.isdecimal()):
            similar = kind if kind.startswith("ml.") else f"ml.{kind}"
            advice = "" if kind in known else did_you_mean(similar, known, most=0)
            step = advice or "give a type of Amazon SageMaker and a whole number, such as ml.p4d.24xlarge=2"
            raise invalid("--quota", f"is {f'{kind}={text}'!r}", step)
    return {kind: int(text) for kind, text in texts.items()}


def require_quotas(
    request: Mapping[str, Any], in_progress: Iterable[Mapping[str, Any]], quotas: Mapping[str, int]
) -> None:
    """Raise `ApiError` for a training job that would use more instances than a quota, beside the jobs in progress.

    Args:
        request: The CreateTrainingJob request.
        in_progress: The requests or the descriptions of the jobs that have not ended.
        quotas: Most instances by instance type, of training jobs and separately of those on spot instances.
    """
    used = sum(map(_count_instances, in_progress), Counter[str]())
    for name, count in _count_instances(request).items():
        quota = quotas.get(name.partition(" ")[0], math.inf)
        if used[name] + count > quota:
            raise ApiError(
                "ResourceLimitExceeded",
                f"The account-level service limit '{name}' is {quota} Instances, with current utilization of "
                f"{used[name]} Instances and a request delta of {count} Instances. Please use AWS Service Quotas to "
                "request an increase for this quota.",
            )


def _count_instances(request: Mapping[str, Any]) -> Counter[str]:
    """Count the instances of a training job by the names of AWS's quotas."""
    usage = "spot training job usage" if request.get("EnableManagedSpotTraining") else "training job usage"
    resources = request.get("ResourceConfig", {})
    counts: Counter[str] = Counter()
    for group in resources.get("InstanceGroups") or (resources,):
        if kind := group.get("InstanceType"):
            counts[f"{kind} for {usage}"] += group.get("InstanceCount", 1)
    return counts
