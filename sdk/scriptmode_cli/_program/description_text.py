"""The summary of a training job as lines of text, from its description. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

from scriptmode import Failure, FileSystemInput, HostActivity, JobEvent, TrainingInput
from scriptmode._core.handle.log_lines import describe_model
from scriptmode._core.spec.failure_text import summarize_error
from scriptmode._core.spec.inputs import Channel
from scriptmode._core.spec.job_description import JobDescription
from scriptmode._core.spec.job_request import JobRequest
from scriptmode._core.text.messages import format_duration
from scriptmode._core.text.terminal_text import escape_unprintable
from scriptmode._display.formatting import format_usage
from scriptmode_local._data.file_uris import is_file
from scriptmode_runtime import contract
from scriptmode_runtime._values import secret_names

#: The hyperparameter that enables each distribution, and the name that is printed.
_DISTRIBUTIONS = {
    contract.MPI_ENABLED: "MPI",
    contract.PARAMETER_SERVER_ENABLED: "parameter servers",
    contract.MULTI_WORKER_MIRRORED_ENABLED: "multi-worker mirrored",
}
#: Lines of output that are shown of a failure.
_MOST_LINES = 12


def render_description(
    description: JobDescription,
    activity: Mapping[str, HostActivity] | None = None,
    colour_status: Callable[[str], str] = str,
    failure: Failure | None = None,
    events: Iterable[JobEvent] = (),
) -> str:
    """Render a description as lines, each a label and its value; the further lines of a value have no label.

    ``activity`` is what the hosts do now, ``failure`` why the job failed, by default its FailureReason. Secrets are
    masked, and control characters are escaped. ``colour_status`` gets the status. ``events``: what the job lost and did
    again.
    """
    warnings = "\n".join(map(str, events))
    values = {**_labelled(description, activity or {}, failure), "warning": warnings}
    rows = [
        ("" if number else label, line)
        for label, value in values.items()
        for number, line in enumerate((value or "").splitlines())
    ]
    width, status = max(len(label) for label, _ in rows), str(description.status)

    def shown(label: str, value: str) -> str:
        line = escape_unprintable(secret_names.without_userinfo(f"{label:<{width}}  {value}".rstrip()))
        return line.replace(status, colour_status(status), 1) if label == "status" else line

    return "\n".join(shown(*row) for row in rows)


def _labelled(
    description: JobDescription, activity: Mapping[str, HostActivity], failure: Failure | None
) -> dict[str, str | None]:
    """Return what a job may have by its label."""
    job = description.job
    parameters = {key: _value(key, value) for key, value in job.hyperparameters.items()}
    given = {key: value for key, value in parameters.items() if not key.startswith(contract.RESERVED_PREFIX)}
    source = parameters.get(contract.SUBMIT_DIRECTORY, "the image")
    # Amazon SageMaker has no files of a machine.
    uris = (job.source_uri, job.output.path, job.output.checkpoint_uri, description.artifact_uri)
    is_served = not job.resources.host_kind.has_local_jobs and any(map(is_file, filter(None, uris)))
    return {
        "job": job.name,
        "status": _status(description),
        "server": "has its own file:// paths: those below are not of this machine" if is_served else "",
        "message": description.stop_message if description.has_ended else description.message,
        "retries": _retries(description),
        "created": description.created.astimezone().isoformat(" ", "seconds") if description.created else "",
        **(_failure(description, failure) if failure else {"failed": description.failure_reason}),
        "hosts": "\n".join(filter(None, (_hosts(job), *(_doing(host, usage) for host, usage in activity.items())))),
        "script": f"{parameters[contract.PROGRAM]} from {source}" if job.program else "",
        "image": job.algorithm.image_uri,
        "inputs": "\n".join(map(_channel, job.channels)),
        "hyperparameters": "\n".join(escape_unprintable(f"{key} = {value}") for key, value in given.items()),
        # Only the names: the values may be secrets.
        "environment": ", ".join(sorted(job.environment)),
        "checkpoints": job.output.checkpoint_uri,
        "output": job.output.path,
        "model": description.artifact_uri if is_served else describe_model(description),
    }


def _status(description: JobDescription) -> str:
    status, secondary = description.status, description.secondary
    shown = status if secondary in ("", status) else f"{status} ({secondary})"
    seconds = description.training_seconds
    return shown if seconds is None else f"{shown}, {format_duration(seconds)} of training"


def _retries(description: JobDescription) -> str:
    """Return how often a job that has not ended may start again; "" for one without max_retry_attempts."""
    most = description.job.limits.max_retry_attempts
    if most is None or description.has_ended:
        return ""
    # The service enters Starting for each retry (RetryStrategy).
    starts = sum(transition.status == "Starting" for transition in description.transitions)
    return f"{max(0, most - max(0, starts - 1))} of {most} left"


def _failure(description: JobDescription, failure: Failure) -> dict[str, str]:
    host = f" --host {failure.log_host}" if failure.log_host else ""
    # Without an error that is known as one: the last output, or the text of another launcher.
    error = summarize_error(failure) or "\n".join(failure.traceback.splitlines()[-_MOST_LINES:])
    return {
        "failed": "\n".join(filter(None, (failure.cause, error))),
        "hint": failure.hint,
        "log": f"scriptmode logs {description.name}{host}",
    }


def _hosts(job: JobRequest) -> str:
    resources = job.resources
    groups = [
        f"{group.instance_group_name}: {group.instance_count} x {group.instance_type}"
        for group in resources.instance_groups
    ]
    hosts = groups or [f"{resources.count} x {resources.instance_type or 'instances of a plan'}"]
    kinds = [name for switch, name in _DISTRIBUTIONS.items() if contract.enabled(job.parameter(switch))]
    return ", ".join(hosts + kinds)


def _doing(host: str, activity: HostActivity) -> str:
    """Return where a host is, its resources, and for how long it has been silent; "" while nothing is known."""
    facts = ", ".join(filter(None, (activity.place, format_usage(activity), activity.silence)))
    return f"{host}: {facts}" if facts else ""


def _channel(channel: Channel) -> str:
    source = channel.source
    mode = None
    if isinstance(source, TrainingInput):
        location, mode = source.s3_data, source.input_mode
    elif isinstance(source, FileSystemInput):
        location = f"{source.file_system_type} {source.file_system_id}:{source.directory_path}"
    else:
        location = source.kind
    return f"{channel.name} = {location}" + (f" ({mode})" if mode else "")


def _value(name: str, encoded: str) -> str:
    """Return a hyperparameter as the script gets it: in script mode texts are encoded as JSON."""
    value = contract.decode(encoded)
    shown = _without_secrets(name, value)
    if isinstance(shown, str):
        return shown
    return encoded if shown == value else json.dumps(shown)


def _without_secrets(name: str, value: object) -> object:
    """Mask a value whose name marks it as a secret, and such values nested in it."""
    if value not in ("", None) and secret_names.is_secret(name, value):
        return secret_names.MASK
    if isinstance(value, dict):
        return {key: _without_secrets(key, member) for key, member in value.items()}
    if isinstance(value, list):
        return [_without_secrets("", member) for member in value]
    return value
