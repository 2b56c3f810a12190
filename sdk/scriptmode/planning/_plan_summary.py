"""The text of a plan: what runs, on which hosts, with which data, for how long. Pure."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from scriptmode._core.spec.inputs import FileSystemInput
from scriptmode._core.spec.job_request import JobRequest
from scriptmode._core.spec.training_job import Resources
from scriptmode._core.text import messages
from scriptmode._core.text.terminal_text import escape_unprintable
from scriptmode.planning._plan_parts import HostPlan, SourcePlan

_LABEL = 9
#: Lines of text that a row may take, and items of a list that are shown.
_MOST_LINES, _MOST_ITEMS = 2, 3
_HOUR = 3600


def summary_lines(
    job: JobRequest, hosts: Mapping[str, HostPlan], source: SourcePlan | None, assumed: Sequence[str], width: int
) -> Iterator[str]:
    """Yield a plan's summary, about fifteen lines; ``job`` has no secrets."""
    yield from _wrap(f"Training job {job.name}: {_counted_types(job.resources)}", width)
    kind, image = job.resources.host_kind, job.algorithm.image_uri
    rows = {
        "runs": [_command(next(iter(hosts.values())))],
        "hosts": [kind.title, *_host_roles(hosts)],
        "image": [image] if kind.runs_images and image else [],
        "source": [_source(source)] if source else [],
        "inputs": _first(_inputs(job)) or ["none"],
        "output": [str(job.output.path), *_checkpoints(job)],
        "limits": [_limits(len(hosts), job)],
        "assumed": _first(assumed),
    }
    for label, texts in rows.items():
        for number, text in enumerate(texts):
            yield from _wrap(text, width, f"  {'' if number else label:<{_LABEL}}", _MOST_LINES)


def _wrap(text: str, width: int, first: str = "", most: int | None = None) -> list[str]:
    """Return the lines of a text, of ``width`` characters where no word is longer: a URI is to be copied."""
    return textwrap.wrap(
        escape_unprintable(text),
        width,
        initial_indent=first,
        subsequent_indent=" " * (len(first) + 2),
        break_on_hyphens=False,
        break_long_words=False,
        max_lines=most,
        placeholder=" ...",
    )


def _counted_types(resources: Resources) -> str:
    """Return the hosts by instance type: ``1 x ml.c5.xlarge and 2 x ml.p3.2xlarge``."""
    counts: Counter[str] = Counter()
    for group in resources.host_groups:
        counts[group.instance_type] += len(group.hosts)
    return " and ".join(f"{count} x {instance_type}" for instance_type, count in counts.items())


def _first(texts: Sequence[str]) -> list[str]:
    rest = len(texts) - _MOST_ITEMS
    return [*texts] if rest <= 1 else [*texts[:_MOST_ITEMS], f"and {rest} more"]


def _command(host: HostPlan) -> str:
    if not host.program:
        return "the program of the image"
    start, *arguments = host.program
    return shlex.join([start.rpartition("/")[2], *arguments])


def _host_roles(hosts: Mapping[str, HostPlan]) -> list[str]:
    shown = _first([*hosts])
    roles = [f"{name}: {hosts[name].roles}" if name in hosts else name for name in shown]
    return roles if hosts[shown[0]].roles else []


def _source(source: SourcePlan) -> str:
    if source.files is None:
        return f"{source.uri}, already stored"
    largest = sorted(source.files, key=lambda name: -source.files[name] if source.files else 0)[:_MOST_ITEMS]
    more = ", ..." if len(source.files) > len(largest) else ""
    size = messages.format_bytes(source.total or 0)
    return f"{messages.pluralize(len(source.files), 'file')}, {size}: {', '.join(largest)}{more}"


def _inputs(job: JobRequest) -> list[str]:
    return [
        f"{channel.name}: "
        + (
            f"{channel.source.file_system_id}{channel.source.directory_path}"
            if isinstance(channel.source, FileSystemInput)
            else f"{getattr(channel.source, 's3_data', 'a source of the service')}, {job.input_mode(channel)}"
        )
        for channel in job.channels
        if channel is not job.source_channel
    ]


def _checkpoints(job: JobRequest) -> list[str]:
    uri, kind = job.output.checkpoint_uri, job.resources.host_kind
    usual = "/opt/ml/checkpoints" if kind.runs_images else "the directory checkpoints beside SM_MODEL_DIR"
    here = job.output.checkpoint_local_path or usual
    return [f"checkpoints: {uri}, copied to {here} at the start and from there while the job runs"] if uri else []


def _limits(count: int, job: JobRequest) -> str:
    limits = job.limits
    text = f"at most {messages.format_duration(limits.max_run)} of training"
    if limits.max_wait:
        text += f", {messages.format_duration(limits.max_wait)} with waiting"
    kind = job.resources.host_kind
    if kind.is_scheduled:
        # Such as the script's --time, or the partition's default.
        return f"{text}, and the time limit of the {kind.system} job"
    if kind.has_local_jobs:
        return text
    hours = f"{count * limits.max_run / _HOUR:,.1f}".removesuffix(".0")
    return f"{text}; cost: at most {hours} instance hours" + (" of spot" if limits.use_spot_instances else "")
