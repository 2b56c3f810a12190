"""Parse the service's requests and descriptions of jobs. Pure.

`parse_request` returns a `JobRequest`, and `parse_description` a `JobDescription`, whose ``job`` is a `JobRequest`:
what other packages read. `estimator_arguments` returns the arguments that would start a job again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scriptmode._core.request.fields import FIELDS, field_at, parse_fields, unchecked
from scriptmode._core.request.render import derived_model_dir, render_request
from scriptmode._core.request.service_model import DESCRIBED_DEFAULTS, REQUEST_SHAPE, SELECTED_HOSTS, shapes
from scriptmode._core.spec.distribution import KINDS, parse_distribution
from scriptmode._core.spec.job_description import JobDescription, JobStatus, Transition
from scriptmode._core.spec.job_request import ABSENT, Correction, JobRequest
from scriptmode._core.spec.names import base_of_job
from scriptmode._core.spec.training_job import RESERVED_TAGS, Algorithm, Limits, Monitoring, Network, Output, Resources
from scriptmode.errors import SpecError
from scriptmode_runtime import contract

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scriptmode._core.spec.distribution import Distribution


#: The class of each group of attributes of a `JobRequest`.
_SECTIONS: dict[str, type[Any]] = {
    "algorithm": Algorithm,
    "output": Output,
    "resources": Resources,
    "limits": Limits,
    "network": Network,
    "monitoring": Monitoring,
}
#: The arguments that are fields as they are.
_PLAIN = "plain_fields"
_TIMES = {
    "created": "CreationTime",
    "modified": "LastModifiedTime",
    "training_started": "TrainingStartTime",
    "training_ended": "TrainingEndTime",
    "training_seconds": "TrainingTimeInSeconds",
    "host_billable_seconds": "BillableTimeInSeconds",
}
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


def parse_request(request: Mapping[str, Any]) -> JobRequest:
    """Return a CreateTrainingJob request as a value; `render_request` returns the same request again.

    Types of values are not validated: the service's model, or that of a record, is what validates them.
    """
    job = _parse_fields(request)
    return replace(job, corrections=tuple(_corrections(render_request(job), request)))


def as_job_request(request: JobRequest | Mapping[str, Any]) -> JobRequest:
    """Return a request as a value, also one that is the service's JSON."""
    return request if isinstance(request, JobRequest) else parse_request(request)


def parse_description(response: Mapping[str, Any]) -> JobDescription:
    """Return a response of DescribeTrainingJob as a value."""
    times = {name: response.get(field) for name, field in _TIMES.items()}
    return JobDescription(
        job=_parse_fields(response),
        status=JobStatus(response["TrainingJobStatus"]),
        arn=response.get("TrainingJobArn", ""),
        secondary=response.get("SecondaryStatus", ""),
        transitions=tuple(
            Transition(entry["Status"], entry.get("StartTime"), entry.get("EndTime"), entry.get("StatusMessage") or "")
            for entry in response.get("SecondaryStatusTransitions") or ()
        ),
        failure_reason=response.get("FailureReason") or "",
        model_uri=(response.get("ModelArtifacts") or {}).get("S3ModelArtifacts") or "",
        respond=lambda: response,
        **times,
    )


def _parse_fields(fields: Mapping[str, Any]) -> JobRequest:
    sections: dict[str, dict[str, object]] = {name: {} for name in (*_SECTIONS, _PLAIN)}
    own: dict[str, object] = {}
    for attribute, value in parse_fields(FIELDS, fields).items():
        section, _, name = attribute.rpartition(".")
        (sections[section] if section else own)[name] = value
    made = {name: unchecked(kind, **sections[name]) for name, kind in _SECTIONS.items()}
    return JobRequest(**{"name": "", **made, _PLAIN: sections[_PLAIN], **own})


def _corrections(rendered: Any, given: Any, path: tuple[str | int, ...] = ()) -> Iterator[Correction]:
    """Yield what turns the rendered value into the given one."""
    if isinstance(rendered, dict) and isinstance(given, dict):
        for key in dict.fromkeys((*rendered, *given)):
            yield from _corrections(rendered.get(key, ABSENT), given.get(key, ABSENT), (*path, key))
    elif isinstance(rendered, list) and isinstance(given, list) and len(rendered) == len(given):
        for index, pair in enumerate(zip(rendered, given)):
            yield from _corrections(*pair, (*path, index))
    elif rendered != given:
        yield Correction(path, rendered, given)


def described_fields(description: Mapping[str, Any]) -> dict[str, object]:
    """Return the fields of a description that a request has too, without empty ones and those that say the default."""
    known = shapes()[REQUEST_SHAPE]["members"]
    given = {name: item for name, item in description.items() if name in known and DESCRIBED_DEFAULTS.get(name) != item}
    body = {name: _without_empty(item, known[name]["shape"]) for name, item in given.items()}
    return {name: item for name, item in body.items() if item not in _EMPTY}


def _without_empty(value: Any, shape: str) -> Any:
    """Return a described value without the fields that a request does not have, and without empty ones."""
    model = shapes()[shape]
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
    arguments["base_job_name"] = base_of_job(job.name)
    arguments["tags"] = {key: value for key, value in tags.items() if not key.startswith(RESERVED_TAGS)} or None
    if job.monitoring.debug_rules:
        from scriptmode._core.spec.monitoring import rules_of_next_job

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


#: Where the service stores what the debugger, the profiler and TensorBoard write: the configuration with its
#: S3OutputPath, and the directory below the job's name.
_MONITORING_OUTPUTS = {
    "debugger": ("DebugHookConfig", "debug-output"),
    "profiler": ("ProfilerConfig", "profiler-output"),
    "tensorboard": ("TensorBoardOutputConfig", "tensorboard-output"),
}


def monitoring_output(description: Mapping[str, Any], which: str) -> str | None:
    """Return the URI below which a job's debugger, profiler or tensorboard stores; ``None`` where it is off."""
    key, directory = _MONITORING_OUTPUTS[which]
    config = description.get(key) or {}
    path = config.get("S3OutputPath")
    if not path or config.get("DisableProfiler"):
        return None
    return f"{path.rstrip('/')}/{description['TrainingJobName']}/{directory}"


def rule_statuses(description: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return the evaluation statuses of a described job's rules, those of the debugger first."""
    names = ("DebugRuleEvaluationStatuses", "ProfilerRuleEvaluationStatuses")
    return [dict(status) for name in names for status in description.get(name) or ()]
