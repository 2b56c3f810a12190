"""The text of a plan: what runs, on which hosts, with which data, for how long; or a difference. Pure."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from scriptmode.core.spec.inputs import FileSystemInput
from scriptmode.core.spec.job_request import JobRequest
from scriptmode.core.spec.training_job import Resources
from scriptmode.core.text import messages
from scriptmode.core.text.terminal_text import escape_unprintable
from scriptmode.planning.plan_parts import Difference, HostPlan, SourcePlan

_LABEL = 9
#: Lines of text that a row may take, and items of a list that are shown.
_MOST_LINES, _MOST_ITEMS = 2, 3
#: Changed files that are all shown.
_MOST_FILES = 6
_HOUR = 3600


class Row(NamedTuple):
    """A text with the indentation of its first and its other lines; what needs more than ``most`` lines is cut."""

    text: str
    first: str = ""
    others: str = "    "
    most: int | None = None

    def lines(self, width: int) -> list[str]:
        """Return the lines, of ``width`` characters where no word is longer: a URI is to be copied."""
        return textwrap.wrap(
            escape_unprintable(self.text),
            width,
            initial_indent=self.first,
            subsequent_indent=self.others,
            break_on_hyphens=False,
            break_long_words=False,
            max_lines=self.most,
            placeholder=" ...",
        ) or [""]


def summary_rows(
    job: JobRequest, hosts: Mapping[str, HostPlan], source: SourcePlan | None, assumed: Sequence[str]
) -> Iterator[Row]:
    """Yield the rows of a plan's summary, about fifteen lines; ``job`` has no secrets."""
    kind = job.resources.host_kind
    yield Row(f"Training job {job.name}: {counted_types(job.resources)}")
    yield from _labelled("runs", [_command(hosts)])
    yield from _labelled("hosts", [kind.title, *_host_roles(hosts)])
    if kind.runs_images and job.algorithm.image_uri:
        yield from _labelled("image", [job.algorithm.image_uri])
    if source:
        yield from _labelled("source", [_source(source)])
    yield from _labelled("inputs", _first(_inputs(job)) or ["none"])
    yield from _labelled("output", [str(job.output.path)])
    yield from _labelled("limits", [_limits(len(hosts), job)])
    yield from _labelled("assumed", _first(assumed))


def counted_types(resources: Resources) -> str:
    """Return the hosts by instance type: ``1 x ml.c5.xlarge and 2 x ml.p3.2xlarge``."""
    counts: Counter[str] = Counter()
    for group in resources.host_groups:
        counts[group.instance_type] += len(group.hosts)
    return " and ".join(f"{count} x {each}" for each, count in counts.items())


def _labelled(label: str, texts: Sequence[str]) -> Iterator[Row]:
    margin = " " * (2 + _LABEL)
    for number, text in enumerate(texts):
        yield Row(text, f"  {label:<{_LABEL}}" if number == 0 else margin, margin + "  ", _MOST_LINES)


def _first(texts: Sequence[str]) -> list[str]:
    rest = len(texts) - _MOST_ITEMS
    return [*texts] if rest <= 1 else [*texts[:_MOST_ITEMS], f"and {rest} more"]


def _command(hosts: Mapping[str, HostPlan]) -> str:
    first = next(iter(hosts.values()))
    if not first.program:
        return "the program of the image"
    start, *arguments = first.program
    return shlex.join([start.rpartition("/")[2], *arguments])


def _host_roles(hosts: Mapping[str, HostPlan]) -> list[str]:
    names = list(hosts)
    rest = len(names) - _MOST_ITEMS
    shown = names if rest <= 1 else [*names[: _MOST_ITEMS - 1], names[-1]]
    roles = [f"{name}: {hosts[name].roles}" for name in shown if hosts[name].roles]
    return [*roles[:-1], f"and {rest} more to {roles[-1]}"] if roles and rest > 1 else roles


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


def _limits(count: int, job: JobRequest) -> str:
    limits = job.limits
    text = f"at most {messages.format_duration(limits.max_run)} of training"
    if limits.max_wait:
        text += f", {messages.format_duration(limits.max_wait)} with waiting"
    kind = job.resources.host_kind
    if kind.is_scheduled:
        # Such as the script's --time, or the partition's default.
        return f"{text}, and the time limit of the {kind.place} job"
    if kind.is_local:
        return text
    hours = f"{count * limits.max_run / _HOUR:,.1f}".removesuffix(".0")
    return f"{text}; cost: at most {hours} instance hours" + (" of spot" if limits.use_spot_instances else "")


def difference_rows(difference: Difference) -> Iterator[Row]:
    """Yield the rows of a difference."""
    yield Row(f"Difference to {difference.job}")
    for path, change in difference.fields.items():
        if change.before is None:
            yield _item(f"{path}: {_json(change.after)}, not set before")
        elif change.after is None:
            yield _item(f"{path}: not set, {_json(change.before)} before")
        else:
            yield _item(f"{path}: {_json(change.before)} -> {_json(change.after)}")
    for word, names in (("added", difference.added), ("removed", difference.removed), ("changed", difference.changed)):
        if names:
            yield _item(f"source: {word} {', '.join(_shorten_list(names))}")
    if difference.note:
        yield _item(difference.note)
    elif difference.is_none:
        yield _item("none, except the job's name and what depends on it")


def _item(text: str) -> Row:
    return Row(text, "  ", "    ")


def _shorten_list(values: Sequence[str]) -> list[str]:
    return (
        [*values]
        if len(values) <= _MOST_FILES
        else [*values[:_MOST_ITEMS], f"... {len(values) - _MOST_ITEMS - 1} more ...", values[-1]]
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
