"""The request that starts a described job again, and the arguments and inputs of an estimator that does. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from scriptmode._core.request.fields import FIELDS, changed, field_at
from scriptmode._core.request.job_inputs import parse_source
from scriptmode._core.request.parse import parse_request
from scriptmode._core.request.render import derived_model_dir
from scriptmode._core.request.service_model import DESCRIBED_DEFAULTS, REQUEST_SHAPE, SELECTED_HOSTS, shapes
from scriptmode._core.spec import arguments, hyperparameters, names
from scriptmode._core.spec.distribution import KINDS, Distribution, parse_distribution
from scriptmode._core.spec.inputs import Input
from scriptmode._core.spec.job_description import JobDescription
from scriptmode._core.spec.job_request import ABSENT, JobRequest
from scriptmode._core.spec.monitoring import rule_for_job, rules_of_next_job
from scriptmode._core.spec.training_job import Limits, Resources
from scriptmode._core.spec.whole_numbers import whole_number
from scriptmode._core.text.messages import did_you_mean, warn_caller
from scriptmode.errors import SpecError, invalid
from scriptmode_runtime import contract

_fresh_name = names.fresh_names()
#: The hyperparameters of the distributions for which the runtime writes a TF_CONFIG for each host.
_TF_CONFIG_SWITCHES = (contract.PARAMETER_SERVER_ENABLED, contract.MULTI_WORKER_MIRRORED_ENABLED)
#: Values that the service describes for fields that were not given.
_EMPTY: tuple[Any, ...] = (None, "", [], {})
#: Script mode's hyperparameters that arguments stand for.
_OWN = {
    contract.PROGRAM,
    contract.SUBMIT_DIRECTORY,
    contract.ARGUMENTS,
    contract.LOG_LEVEL,
    contract.JOB_NAME,
    contract.REGION,
    contract.DISTRIBUTION_INSTANCE_GROUPS,
    *(key for kind in KINDS.values() for key in (kind.switch, *kind.options.values())),
}


@dataclass(frozen=True)
class RerunChanges:
    """The changes of the new job; ``None`` and an empty mapping change nothing."""

    job_name: str | None = None
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    instance_count: int | None = None
    #: Seconds.
    max_run: int | None = None
    max_wait: int | None = None


def check_checkpoints(description: JobDescription) -> None:
    """Raise `SpecError` for a job that may still write checkpoints: its copy would write the same ones."""
    name, uri = description.name, description.job.output.checkpoint_uri
    if uri and not description.has_ended:
        what = f"training job {name} is {description.status} ({description.secondary}) and writes checkpoints to {uri}"
        other = f"set another checkpoint_s3_uri, or None, in Estimator.attach({name!r}) and fit it"
        step = f"stop it first: scriptmode stop {name} --wait, or {other}"
        raise SpecError(what, step, argument="checkpoint_s3_uri")


def rerun_request(description: Mapping[str, Any], tags: Mapping[str, str], changes: RerunChanges) -> JobRequest:
    """Return the request of a described job with ``changes``.

    SessionChainingConfig, which the service does not describe, is not in it. The hosts' secret, and URIs with the
    job's name, become the new job's. Raises `SpecError` for a change that the job cannot have.
    """
    job = parse_request(described_fields(description))
    given = changes.job_name
    new = _fresh_name(names.base_of_job(job.name)) if given is None else names.check_job_name(given)
    rules = tuple(rule_for_job(rule, new, earlier=job.name) for rule in job.monitoring.debug_rules)
    return replace(
        job,
        name=new,
        hyperparameters=_parameters(job, changes, new),
        monitoring=changed(job.monitoring, debug_rules=rules),
        environment={name: value for name, value in job.environment.items() if name != contract.SECRET_VARIABLE},
        tags=tuple((key, value) for key, value in tags.items() if not key.lower().startswith(names.RESERVED_TAGS)),
        resources=_resources(job, changes.instance_count),
        limits=_limits(job, changes),
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
    for name in given:
        if name not in encoded and (similar := did_you_mean(str(name), encoded, most=0)):
            warn_caller(f"training job {job.name} has no hyperparameter {name!r}; {similar}")
    encoded.update(hyperparameters.encode_hyperparameters(given, script_mode=script_mode))
    return hyperparameters.check_texts(encoded)


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
                f"leave it out, or set it with use_spot_instances or max_retry_attempts of "
                f"Estimator.attach({job.name!r}) and fit it",
            )
        wait = changes.max_wait
    elif wait is not None:
        wait += max(0, run - before.max_run)
    return replace(before, max_run=run, max_wait=wait)


def described_fields(description: Mapping[str, Any]) -> dict[str, object]:
    """Return the fields of a description that a request has too, without empty ones and those that say the default."""
    known = shapes(REQUEST_SHAPE)[REQUEST_SHAPE]["members"]
    given = {name: item for name, item in description.items() if name in known and DESCRIBED_DEFAULTS.get(name) != item}
    body = {name: _without_empty(item, known[name]["shape"]) for name, item in given.items()}
    return {name: item for name, item in body.items() if item not in _EMPTY}


def _without_empty(value: Any, shape: str) -> Any:
    """Return a described value without the fields that a request does not have, and without empty ones."""
    model = shapes(REQUEST_SHAPE)[shape]
    if model["type"] == "structure" and isinstance(value, dict):
        members = model["members"]
        known = members.keys() - SELECTED_HOSTS
        kept = {key: _without_empty(item, members[key]["shape"]) for key, item in value.items() if key in known}
        return {key: item for key, item in kept.items() if item not in _EMPTY}
    if model["type"] == "list" and isinstance(value, (list, tuple)):
        return [_without_empty(item, model["member"]["shape"]) for item in value]
    return dict(value) if isinstance(value, dict) else value


def estimator_arguments(description: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, Any]:
    """Return the keyword arguments of an `Estimator` that would start the described job again, without its inputs.

    They are not checked: the service may have accepted what an estimator refuses.
    """
    fields = described_fields(description)
    job = parse_request(fields)
    arguments = {row.argument: field_at(fields, row.path) for row in FIELDS if row.argument}
    # A new job gets a new secret.
    arguments["environment"] = {
        name: value for name, value in job.environment.items() if name != contract.SECRET_VARIABLE
    } or None
    arguments["base_job_name"] = names.base_of_job(job.name)
    arguments["tags"] = {key: value for key, value in tags.items() if not key.startswith(names.RESERVED_TAGS)} or None
    if job.monitoring.debug_rules:
        arguments["rules"] = rules_of_next_job(job.monitoring.debug_rules, job.name)
    if job.resources.instance_groups:
        arguments.update(instance_groups=list(job.resources.instance_groups), instance_count=None, instance_type=None)
    elif preferences := field_at(fields, "ResourceConfig.InstancePreferences"):
        # What the hosts are like, for an estimator; the request has the preferences in their place.
        arguments["instance_type"] = preferences[0]["InstanceType"]
        arguments["instance_count"] = preferences[0].get("InstanceCount", 1)
    arguments["disable_output_compression"] = not job.output.compress
    for name, uri in job.model_uris.items():
        arguments.update(model_uri=uri, model_channel_name=name)
    has_script = bool(job.program) and job.source_uri is not None
    parameters = {key: job.parameter(key) if has_script else text for key, text in job.hyperparameters.items()}
    others = (contract.MODEL_DIR_PARAMETER, contract.TUNING_METRIC)
    own = {key for key in parameters if has_script and (key.startswith(contract.RESERVED_PREFIX) or key in others)}
    arguments["hyperparameters"] = {key: value for key, value in parameters.items() if key not in own}
    kept = {key: job.hyperparameters[key] for key in own - _OWN if key != contract.MODEL_DIR_PARAMETER}
    arguments["additional_request_fields"] = {**_others(job), **({"HyperParameters": kept} if kept else {})} or None
    if has_script:
        arguments.update(_script(job, parameters), source_dir=job.source_uri)
    return {name: value for name, value in arguments.items() if value is not None}


def _script(job: JobRequest, parameters: Mapping[str, Any]) -> dict[str, object]:
    # A model_dir that was derived is derived again, so that the next job gets one of its own.
    with_mpi = bool(parameters.get(contract.MPI_ENABLED))
    derived = derived_model_dir(str(job.output.path), job.name, with_mpi=with_mpi)
    model_dir = parameters.get(contract.MODEL_DIR_PARAMETER, False)
    return {
        "entry_point": job.program,
        "arguments": parameters.get(contract.ARGUMENTS),
        "container_log_level": parameters.get(contract.LOG_LEVEL),
        "distribution": _distribution(parameters),
        "model_dir": True if model_dir == derived else model_dir,
    }


def _others(job: JobRequest) -> dict[str, object]:
    """Return the fields that no argument sets; the inputs are not among them."""
    kept: dict[str, Any] = {}
    if job.monitoring.profiler_rules:
        kept["ProfilerRuleConfigurations"] = list(job.monitoring.profiler_rules)
    known = {tuple(row.path.split(".")) for row in FIELDS}
    for path, rendered, given in job.corrections:
        if rendered is not ABSENT or path in known or path[0] == "InputDataConfig":
            continue
        target = kept
        for key in path[:-1]:
            target = target.setdefault(str(key), {})
        target[str(path[-1])] = given
        if path == ("ResourceConfig", "InstancePreferences"):
            target.update(InstanceType=None, InstanceCount=None)
    return kept


def _distribution(parameters: Mapping[str, Any]) -> Distribution | dict[str, object] | None:
    """Return the distribution; as a dict, which the estimator validates, where it cannot be started."""
    distribution: dict[str, Any] = {}
    for kind, (_, switch, options) in KINDS.items():
        if parameters.get(switch):
            options_given = {name: parameters[key] for name, key in options.items() if parameters.get(key)}
            distribution[kind] = {"enabled": True, **options_given}
    groups = parameters.get(contract.DISTRIBUTION_INSTANCE_GROUPS)
    if distribution and groups and not any("roles" in options for options in distribution.values()):
        distribution["instance_groups"] = list(groups)
    try:
        return parse_distribution(distribution or None)
    except SpecError:
        return distribution


def job_inputs(description: Mapping[str, Any]) -> dict[str, Input]:
    """Return a described job's inputs by channel name, without the channels of the source archive and ``model_uri``."""
    job = parse_request(description)
    carried = {*job.model_uris, job.source_channel and job.source_channel.name}
    return {
        channel["ChannelName"]: parse_source(f"channel {channel['ChannelName']!r}", channel)
        for channel in description.get("InputDataConfig", ())
        if channel["ChannelName"] not in carried
    }
