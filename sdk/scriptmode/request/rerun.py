"""The request that starts a described job again, with a new name and other changes. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scriptmode.errors import SpecError
from scriptmode.request.parse import described_fields
from scriptmode.request.render import derived_model_dir
from scriptmode.spec import arguments, hyperparameters, names
from scriptmode.spec.monitoring import rule_for_job, rules_of_next_job
from scriptmode.spec.training_job import RESERVED_TAGS, Limits
from scriptmode.spec.whole_numbers import whole_number
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping


_NAMES = names.JobNames()
_TAGS, _RULES = "Tags", "DebugRuleConfigurations"
_RUN, _WAIT = "MaxRuntimeInSeconds", "MaxWaitTimeInSeconds"


@dataclass(frozen=True)
class RerunChanges:
    """The changes of the new job; ``None`` and an empty mapping change nothing."""

    job_name: str | None = None
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    instance_count: int | None = None
    #: Seconds.
    max_run: int | None = None
    max_wait: int | None = None


def rerun_request(description: Mapping[str, Any], tags: Mapping[str, str], changes: RerunChanges) -> dict[str, Any]:
    """Return the CreateTrainingJob request of a described job with ``changes``.

    SessionChainingConfig, which the service does not describe, is not in it. The hosts' secret, and URIs with the
    job's name, become the new job's. Raises `SpecError` for a change that the job cannot have.
    """
    body = described_fields(description)
    old = str(description["TrainingJobName"])
    new = _NAMES.fresh(names.base_of_job(old)) if changes.job_name is None else names.check_job_name(changes.job_name)
    body["TrainingJobName"] = new
    body["HyperParameters"] = _parameters(description, changes, new)
    rules = rules_of_next_job(body.get(_RULES) or (), old)
    body[_RULES] = [rule_for_job(rule, new) for rule in rules]
    body.get("Environment", {}).pop(contract.SECRET_VARIABLE, None)
    body[_TAGS] = [
        {"Key": key, "Value": value} for key, value in tags.items() if not key.lower().startswith(RESERVED_TAGS)
    ]
    if changes.instance_count is not None:
        body["ResourceConfig"] = _resized(old, body.get("ResourceConfig", {}), changes.instance_count)
    if changes.max_run is not None or changes.max_wait is not None:
        body["StoppingCondition"] = _timed(description, changes)
    return {name: each for name, each in body.items() if each not in (None, "", [], {})}


def _parameters(description: Mapping[str, Any], changes: RerunChanges, new: str) -> dict[str, str]:
    encoded = dict(description.get("HyperParameters", {}))
    script_mode = contract.PROGRAM in encoded
    if script_mode and contract.JOB_NAME in encoded:
        encoded[contract.JOB_NAME] = contract.encode(new)
    output = str(description.get("OutputDataConfig", {}).get("S3OutputPath", "")).rstrip("/")
    # Under MPI it bears no name.
    derived, renewed = (
        derived_model_dir(output, name, with_mpi=False) for name in (description["TrainingJobName"], new)
    )
    if encoded.get(contract.MODEL_DIR_PARAMETER) == contract.encode(derived):
        encoded[contract.MODEL_DIR_PARAMETER] = contract.encode(renewed)
    changed = arguments.copied("hyperparameters", changes.hyperparameters)
    encoded.update(hyperparameters.encode_hyperparameters(changed, script_mode=script_mode))
    return hyperparameters.check_limits(encoded)


def _resized(name: str, resources: Mapping[str, Any], count: object) -> dict[str, Any]:
    count = whole_number("instance_count", count, 1)
    if resources.get("InstanceGroups"):
        raise SpecError(
            f"instance_count is {count}, but training job {name} has instance groups; set the instance_groups of "
            f"Estimator.attach({name!r}) and fit it"
        )
    return {**resources, "InstanceCount": count}


def _timed(description: Mapping[str, Any], changes: RerunChanges) -> dict[str, Any]:
    """Return the job's StoppingCondition with other time limits; a spot job keeps its extra time for waiting."""
    before = dict(description.get("StoppingCondition", {}))
    run, wait = before.get(_RUN, Limits.max_run), before.get(_WAIT)
    longer = run if changes.max_run is None else whole_number("max_run", changes.max_run, 1)
    is_spot = bool(description.get("EnableManagedSpotTraining"))
    attempts = (description.get("RetryStrategy") or {}).get("MaximumRetryAttempts")
    if changes.max_wait is not None:
        if not is_spot and attempts is None:
            name = description["TrainingJobName"]
            raise SpecError(
                f"max_wait is {changes.max_wait!r}, but training job {name} has neither spot instances nor a retry "
                f"strategy; leave it out, or set max_wait and one of use_spot_instances and max_retry_attempts of "
                f"Estimator.attach({name!r}) and fit it"
            )
        wait = changes.max_wait
    elif wait is not None:
        wait += max(0, longer - run)
    limits = Limits(longer, wait, is_spot, attempts)
    return {**before, _RUN: limits.max_run, **({} if limits.max_wait is None else {_WAIT: limits.max_wait})}
