"""Cloud ML Engine's scale tiers and machine types, as instance groups of this machine or of Amazon SageMaker.

The tiers' machines are those of "Specifying machine types or scale tiers" (cloud.google.com/ml-engine/docs, page
machine-types); the price list beside it (page pricing) bears them out: a tier's training units are the sum of its
machines', 5 x 0.5788 + 3 x 0.3878 = 4.057 for STANDARD_1 and 20 x 1.1576 + 11 x 0.9665 = 33.783 for PREMIUM_1.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from scriptmode import InstanceGroup, ParameterServer, SpecError
from scriptmode.messages import did_you_mean

if TYPE_CHECKING:
    from scriptmode.cli.cloud_ml_engine.config import Settings

LOCAL = "local_process"
CUSTOM = "CUSTOM"


@dataclass(frozen=True)
class MachineGroup:
    """So many machines of one type, all with one role: ``master`` (or ``chief``), ``worker`` or ``ps``."""

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
#: The SageMaker type with as many cores (or GPUs) and as much memory, or the next larger one.
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
#: Compute Engine's spelling: a generation, a shape, cores.
_GOOGLE = re.compile(r"[a-z]\d[a-z]?-[a-z]+-\d+[a-z]?")
_SAGEMAKER = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9-]+")
#: A cluster's processes mostly wait for one another: a few share a core. The least lets STANDARD_1 run anywhere.
_PROCESSES_PER_CORE, _LEAST_PROCESSES = 4, 8
_WORDS = {"master": "master", "chief": "chief", "worker": "worker", "ps": "parameter server"}


def resolve_machines(
    settings: Settings, *, is_local: bool, max_processes: int | None = None
) -> tuple[MachineGroup, ...]:
    """Give the machines of a job's scale tier, by the names of the platform's own types.

    Raises `SpecError` for what is no tier or no cluster, for Google's types on Amazon SageMaker, and for more machines
    than ``max_processes`` where each is a process of this machine (default: 4 a core, at least 8).
    """
    found = _custom(settings) if settings.scale_tier == CUSTOM else _of_tier(settings)
    roles = {each.role for each in found}
    if "worker" in roles and "ps" not in roles:
        raise SpecError(
            "workers without a parameter server share no variables; write parameterServerCount: 1 (and its type), or "
            "train with scriptmode.Estimator(distribution=MultiWorkerMirrored())"
        )
    if is_local:
        _check_room(settings.scale_tier, found, max_processes)
        return tuple(replace(each, type=LOCAL) for each in found)
    return found


def format_machines(found: tuple[MachineGroup, ...]) -> str:
    """Say how many there are of each, such as ``1 master, 4 workers, 3 parameter servers``."""
    return ", ".join(f"{each.count} {_WORDS[each.role]}{'s' if each.count > 1 else ''}" for each in found)


def instance_arguments(found: tuple[MachineGroup, ...]) -> dict[str, Any]:
    """Give an estimator's arguments: one group of instances for each role, or one instance."""
    if sum(each.count for each in found) == 1:
        return {"instance_type": found[0].type, "instance_count": 1}
    return {
        "instance_groups": [InstanceGroup(each.role, each.type, each.count) for each in found],
        "distribution": ParameterServer(roles={each.role: each.role for each in found}),
    }


def _of_tier(settings: Settings) -> tuple[MachineGroup, ...]:
    tier = settings.scale_tier
    if tier == "BASIC_TPU":
        raise SpecError("scaleTier BASIC_TPU is a machine with TPUs, which only Google has; use BASIC_GPU or CUSTOM")
    if tier not in TIERS:
        raise SpecError(f"there is no scaleTier {tier!r}{did_you_mean(tier, (*TIERS, CUSTOM))}")
    of_custom = {
        "masterType": settings.master_type,
        "workerType": settings.worker_type,
        "parameterServerType": settings.parameter_server_type,
        "workerCount": settings.worker_count,
        "parameterServerCount": settings.parameter_server_count,
    }
    for key, value in of_custom.items():
        if value is not None:
            raise SpecError(f"{key} is {value!r}, but scaleTier {tier} says it already; write scaleTier: CUSTOM")
    lead = "chief" if settings.uses_chief else "master"
    return tuple(replace(each, role=lead) if each.role == "master" else each for each in TIERS[tier])


def _custom(settings: Settings) -> tuple[MachineGroup, ...]:
    lead = "chief" if settings.uses_chief else "master"
    asked = (
        (lead, "masterType", settings.master_type, 1),
        ("worker", "workerType", settings.worker_type, settings.worker_count or 0),
        ("ps", "parameterServerType", settings.parameter_server_type, settings.parameter_server_count or 0),
    )
    found = []
    for role, key, name, count in asked:
        if name is not None:
            _check_type(key, name)
        if not count:
            continue
        if name is None:
            whose = f"{count} {_WORDS[role]}{'s' if count > 1 else ''}"
            raise SpecError(f"scaleTier CUSTOM with {whose} needs {key}; write one, such as {key}: n1-standard-4")
        found.append(MachineGroup(role, name, count))
    return tuple(found)


def _check_type(key: str, name: str) -> None:
    is_known = name in NEAREST or name == LOCAL
    if not is_known and not _GOOGLE.fullmatch(name) and not _SAGEMAKER.fullmatch(name):
        raise SpecError(
            f"{key} {name!r} is no type of Cloud ML Engine, nor of Amazon SageMaker{did_you_mean(name, tuple(NEAREST))}"
        )


def to_sagemaker_types(found: tuple[MachineGroup, ...], tier: str) -> tuple[MachineGroup, ...]:
    """Give a tier's machines as types of Amazon SageMaker; refuse types of Google's that were chosen by name."""
    if tier != CUSTOM:
        return tuple(replace(each, type=NEAREST[each.type]) for each in found)
    for each in found:
        nearest = NEAREST.get(each.type)
        if each.type == LOCAL:
            raise SpecError(f"{_WORDS[each.role]} type {LOCAL!r} is this machine's; leave out --platform sagemaker")
        if nearest is not None or _GOOGLE.fullmatch(each.type):
            next_step = (
                f"the nearest is {nearest!r}" if nearest else "choose one with as many cores, such as ml.m5.xlarge"
            )
            raise SpecError(
                f"{_WORDS[each.role]} type {each.type!r} is a machine of Google's, and Amazon SageMaker has its own: "
                f"{next_step}"
            )
    return found


def _check_room(tier: str, found: tuple[MachineGroup, ...], max_processes: int | None) -> None:
    cores = os.cpu_count() or 1
    most = max(_LEAST_PROCESSES, _PROCESSES_PER_CORE * cores) if max_processes is None else max_processes
    count = sum(each.count for each in found)
    if count > most:
        raise SpecError(
            f"scaleTier {tier} is {count} machines ({format_machines(found)}); here each is a process of this one "
            f"machine with {cores} core{'s' if cores > 1 else ''}, and more than {most} are not started unasked. Write "
            "scaleTier: CUSTOM with a smaller workerCount and parameterServerCount, train on --platform sagemaker, or "
            f"say --max-processes {count}"
        )
