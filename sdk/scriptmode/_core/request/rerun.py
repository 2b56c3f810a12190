"""The request that starts a described job again, with a new name and other changes. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from scriptmode._core.request.fields import changed
from scriptmode._core.request.parse import described_fields, parse_request
from scriptmode._core.request.render import derived_model_dir, render_request
from scriptmode._core.spec import arguments, hyperparameters, names
from scriptmode._core.spec.monitoring import rule_for_job, rules_of_next_job
from scriptmode._core.spec.training_job import RESERVED_TAGS
from scriptmode._core.spec.whole_numbers import whole_number
from scriptmode.errors import invalid
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.spec.training_job import Limits, Resources


_NAMES = names.JobNames()
#: The hyperparameters of the distributions for which the runtime writes a TF_CONFIG for each host.
_TF_CONFIG_SWITCHES = (contract.PARAMETER_SERVER_ENABLED, contract.MULTI_WORKER_MIRRORED_ENABLED)


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
    job = parse_request(described_fields(description))
    given = changes.job_name
    new = _NAMES.fresh(names.base_of_job(job.name)) if given is None else names.check_job_name(given)
    rules = rules_of_next_job(job.monitoring.debug_rules, job.name)
    return render_request(
        replace(
            job,
            name=new,
            hyperparameters=_parameters(job, changes, new),
            monitoring=changed(job.monitoring, debug_rules=tuple(rule_for_job(rule, new) for rule in rules)),
            environment={name: value for name, value in job.environment.items() if name != contract.SECRET_VARIABLE},
            tags=tuple((key, value) for key, value in tags.items() if not key.lower().startswith(RESERVED_TAGS)),
            resources=_resources(job, changes.instance_count),
            limits=_limits(job, changes),
        )
    )


def _parameters(job: JobRequest, changes: RerunChanges, new: str) -> dict[str, str]:
    encoded = dict(job.hyperparameters)
    script_mode = contract.PROGRAM in encoded
    if script_mode and contract.JOB_NAME in encoded:
        encoded[contract.JOB_NAME] = contract.encode(new)
    output = (job.output.path or "").rstrip("/")
    # Under MPI it bears no name.
    derived, renewed = (derived_model_dir(output, name, with_mpi=False) for name in (job.name, new))
    if encoded.get(contract.MODEL_DIR_PARAMETER) == contract.encode(derived):
        encoded[contract.MODEL_DIR_PARAMETER] = contract.encode(renewed)
    given = arguments.copied("hyperparameters", changes.hyperparameters)
    encoded.update(hyperparameters.encode_hyperparameters(given, script_mode=script_mode))
    return hyperparameters.check_limits(encoded)


def _resources(job: JobRequest, count: object) -> Resources:
    if count is None:
        return job.resources
    count = whole_number("instance_count", count, 1)
    if count > 1 and job.environment.get("TF_CONFIG", "").strip() and any(map(job.parameter, _TF_CONFIG_SWITCHES)):
        what = f"is {count}, but environment['TF_CONFIG'] of training job {job.name} gives all hosts one task"
        raise invalid("instance_count", what, f"remove it from Estimator.attach({job.name!r}).environment and fit that")
    if job.resources.instance_groups:
        what = f"is {count}, but training job {job.name} has instance groups"
        raise invalid("instance_count", what, f"set the instance_groups of Estimator.attach({job.name!r}) and fit it")
    return changed(job.resources, instance_count=count)


def _limits(job: JobRequest, changes: RerunChanges) -> Limits:
    """Return the job's time limits with the changes; a spot job keeps its extra time for waiting."""
    before, wait = job.limits, job.limits.max_wait
    if changes.max_run is None and changes.max_wait is None:
        return before
    run = before.max_run if changes.max_run is None else whole_number("max_run", changes.max_run, 1)
    if changes.max_wait is not None:
        if not before.use_spot_instances and before.max_retry_attempts is None:
            raise invalid(
                "max_wait",
                f"is {changes.max_wait!r}, but training job {job.name} has neither spot instances nor a retry strategy",
                f"leave it out, or set max_wait and one of use_spot_instances and max_retry_attempts of "
                f"Estimator.attach({job.name!r}) and fit it",
            )
        wait = changes.max_wait
    elif wait is not None:
        wait += max(0, run - before.max_run)
    return replace(before, max_run=run, max_wait=wait)
