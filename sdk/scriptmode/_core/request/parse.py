"""Parse the service's requests and descriptions of jobs. Pure.

`parse_request` returns a `JobRequest`, and `parse_description` a `JobDescription`, whose ``job`` is a `JobRequest`:
what other packages read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from scriptmode._core.request.fields import FIELDS, parse_fields, unchecked
from scriptmode._core.request.render import render_request
from scriptmode._core.spec.job_description import JobDescription, JobStatus, Transition
from scriptmode._core.spec.job_request import ABSENT, Correction, JobRequest
from scriptmode._core.spec.training_job import Algorithm, Limits, Monitoring, Network, Output, Resources

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
        artifact_uri=(response.get("ModelArtifacts") or {}).get("S3ModelArtifacts") or "",
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
