"""Cloud ML Engine's scale tiers and machine types, as instance groups of this machine or of Amazon SageMaker.

The machines of each tier are those of "Specifying machine types or scale tiers" (cloud.google.com/ml-engine/docs, page
machine-types). The price list (page pricing) confirms them: the training units of a tier are the sum of those of its
machines, 5 x 0.5788 + 3 x 0.3878 = 4.057 for STANDARD_1 and 20 x 1.1576 + 11 x 0.9665 = 33.783 for PREMIUM_1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scriptmode import InstanceGroup, ParameterServer, SpecError
from scriptmode.core.text.messages import did_you_mean

LOCAL = "local_process"
CUSTOM = "CUSTOM"


@dataclass(frozen=True)
class MachineGroup:
    """Machines of one type and one role: ``master`` (or ``chief``), ``worker`` or ``ps``."""

    role: str
    type: str
    count: int


TIERS = {
    "BASIC": (MachineGroup("master", "n1-standard-4", 1),),
    "BASIC_GPU": (MachineGroup("master", "standard_gpu", 1),),
    "STANDARD_1": (
        MachineGroup("master", "n1-highcpu-8", 1),
        MachineGroup("worker", "n1-highcpu-8", 4),
        MachineGroup("ps", "n1-standard-4", 3),
    ),
    "PREMIUM_1": (
        MachineGroup("master", "n1-highcpu-16", 1),
        MachineGroup("worker", "n1-highcpu-16", 19),
        MachineGroup("ps", "n1-highmem-8", 11),
    ),
}
#: The type of Amazon SageMaker with as many cores (or GPUs) and as much memory, or the next larger one.
NEAREST = {
    "standard": "ml.m5.xlarge",
    "large_model": "ml.r5.2xlarge",
    "complex_model_s": "ml.c5.2xlarge",
    "complex_model_m": "ml.c5.4xlarge",
    "complex_model_l": "ml.c5.9xlarge",
    "standard_gpu": "ml.p2.xlarge",
    "complex_model_m_gpu": "ml.p2.8xlarge",
    "complex_model_l_gpu": "ml.p2.8xlarge",
    "standard_p100": "ml.p3.2xlarge",
    "complex_model_m_p100": "ml.p3.8xlarge",
    "standard_v100": "ml.p3.2xlarge",
    "large_model_v100": "ml.p3.2xlarge",
    "complex_model_m_v100": "ml.p3.8xlarge",
    "complex_model_l_v100": "ml.p3.16xlarge",
    "n1-standard-4": "ml.m5.xlarge",
    "n1-standard-8": "ml.m5.2xlarge",
    "n1-standard-16": "ml.m5.4xlarge",
    "n1-standard-32": "ml.m5.12xlarge",
    "n1-standard-64": "ml.m5.24xlarge",
    "n1-standard-96": "ml.m5.24xlarge",
    "n1-highcpu-8": "ml.c5.2xlarge",
    "n1-highcpu-16": "ml.c5.4xlarge",
    "n1-highcpu-32": "ml.c5.9xlarge",
    "n1-highcpu-64": "ml.c5.18xlarge",
    "n1-highcpu-96": "ml.m5.24xlarge",
    "n1-highmem-2": "ml.r5.large",
    "n1-highmem-4": "ml.r5.xlarge",
    "n1-highmem-8": "ml.r5.2xlarge",
    "n1-highmem-16": "ml.r5.4xlarge",
    "n1-highmem-32": "ml.r5.8xlarge",
    "n1-highmem-64": "ml.r5.16xlarge",
    "n1-highmem-96": "ml.r5.24xlarge",
}
#: A machine type of Compute Engine: generation, shape, number of cores.
_GOOGLE = re.compile(r"[a-z]\d[a-z]?-[a-z]+-\d+[a-z]?")
_SAGEMAKER = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9-]+")
_ROLE_NAMES = {"master": "master", "chief": "chief", "worker": "worker", "ps": "parameter server"}


def resolve_machines(settings: Mapping[str, Any], *, is_local: bool) -> tuple[MachineGroup, ...]:
    """Return the machines of a job's scale tier; on this machine each is a process.

    Raises `SpecError` for an unknown tier and for a cluster that cannot train.
    """
    found = _custom_machines(settings) if settings["scaleTier"] == CUSTOM else _tier_machines(settings)
    roles = {each.role for each in found}
    if "worker" in roles and "ps" not in roles:
        raise SpecError(
            "workers without a parameter server cannot share variables",
            advice="add parameterServerCount: 1 and "
            "parameterServerType, or train with scriptmode.Estimator(distribution=MultiWorkerMirrored())",
        )
    if is_local:
        return tuple(replace(each, type=LOCAL) for each in found)
    return found


def format_machines(found: tuple[MachineGroup, ...]) -> str:
    """Return the number of machines of each role as text, such as ``1 master, 4 workers, 3 parameter servers``."""
    return ", ".join(f"{each.count} {_ROLE_NAMES[each.role]}{'s' if each.count > 1 else ''}" for each in found)


def instance_arguments(found: tuple[MachineGroup, ...]) -> dict[str, Any]:
    """Return the estimator's arguments: one instance group for each role, or one instance."""
    if sum(each.count for each in found) == 1:
        return {"instance_type": found[0].type, "instance_count": 1}
    return {
        "instance_groups": [InstanceGroup(each.role, each.type, each.count) for each in found],
        "distribution": ParameterServer(roles={each.role: each.role for each in found}),
    }


def _tier_machines(settings: Mapping[str, Any]) -> tuple[MachineGroup, ...]:
    tier = settings["scaleTier"]
    if tier == "BASIC_TPU":
        raise SpecError("scaleTier BASIC_TPU needs TPUs, which only Google Cloud has", advice="use BASIC_GPU or CUSTOM")
    if tier not in TIERS:
        raise SpecError(f"there is no scaleTier {tier!r}", advice=did_you_mean(tier, (*TIERS, CUSTOM)))
    for key in ("masterType", "workerType", "parameterServerType", "workerCount", "parameterServerCount"):
        if key in settings:
            raise SpecError(
                f"{key} is {settings[key]!r}, but scaleTier {tier} sets it already",
                advice=f"remove {key}, or write scaleTier: CUSTOM",
            )
    return tuple(replace(each, role=_lead(settings)) if each.role == "master" else each for each in TIERS[tier])


def _lead(settings: Mapping[str, Any]) -> str:
    return "chief" if settings.get("useChiefInTfConfig") else "master"


def _custom_machines(settings: Mapping[str, Any]) -> tuple[MachineGroup, ...]:
    roles = (
        (_lead(settings), "masterType", settings.get("masterType"), 1),
        ("worker", "workerType", settings.get("workerType"), settings.get("workerCount", 0)),
        ("ps", "parameterServerType", settings.get("parameterServerType"), settings.get("parameterServerCount", 0)),
    )
    found = []
    for role, key, name, count in roles:
        if name is not None:
            _check_type(key, name)
        if not count:
            continue
        if name is None:
            what = f"scaleTier CUSTOM with {format_machines((MachineGroup(role, '', count),))} needs {key}"
            raise SpecError(what, advice=f"add one, such as {key}: n1-standard-4")
        found.append(MachineGroup(role, name, count))
    return tuple(found)


def _check_type(key: str, name: str) -> None:
    is_known = name in NEAREST or name == LOCAL
    if not is_known and not _GOOGLE.fullmatch(name) and not _SAGEMAKER.fullmatch(name):
        raise SpecError(
            f"{key} {name!r} is not a machine type of Cloud ML Engine or Amazon SageMaker",
            advice=did_you_mean(name, tuple(NEAREST)) or "use a type such as n1-standard-4 or ml.m5.xlarge",
        )


def to_sagemaker_types(found: tuple[MachineGroup, ...], tier: str) -> tuple[MachineGroup, ...]:
    """Return machines with types of Amazon SageMaker; raise `SpecError` for Google's types in a custom tier."""
    if tier != CUSTOM:
        return tuple(replace(each, type=NEAREST[each.type]) for each in found)
    for each in found:
        nearest = NEAREST.get(each.type)
        if each.type == LOCAL:
            raise SpecError(
                f"{_ROLE_NAMES[each.role]} type {LOCAL!r} is a process of this machine",
                advice="choose a type such as ml.m5.xlarge, or leave out --platform sagemaker",
            )
        if nearest is not None or _GOOGLE.fullmatch(each.type):
            raise SpecError(
                f"{_ROLE_NAMES[each.role]} type {each.type!r} is a machine type of Google Cloud, but --platform is "
                "sagemaker",
                advice=f"write {nearest!r}, the nearest one"
                if nearest
                else "choose one with as many cores, such as ml.m5.xlarge",
            )
    return found
