"""A plan as text: sections of short lines, long lists shortened. Pure."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from typing import TYPE_CHECKING, Any

from scriptmode import messages

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scriptmode.planning.plan_parts import Difference, HostPlan, Process, SourcePlan, Wait

_WIDTH = 118
_LABEL = 22
#: Number of items of a list that are shown, and of the first ones that are shown of a longer list, with its last.
_MOST_ITEMS, _FIRST = 6, 3
#: Number of hosts that are shown; of more hosts `_FIRST` and the last one.
_MOST_HOSTS = 5
_MOST_FILES = 8
#: A field of the request that needs more lines has a line for each member.
_MOST_LINES = 2
_CONFIG = "input/config/"


def format_plan(
    request: Mapping[str, Any],
    hosts: Mapping[str, HostPlan],
    source: SourcePlan | None,
    *,
    assumed: Sequence[str],
    difference: Difference | None,
) -> str:
    """Return the text of a plan, without a line end at its end; ``request`` has no secrets."""
    types = " and ".join(_counted(hosts))
    lines = [f"Training job {request['TrainingJobName']}: {types}", "Request (CreateTrainingJob)", *_request(request)]
    lines += ["", "Source", *_source(source)]
    lines += ["", "Hosts", *_hosts(list(hosts.values()), request)]
    if assumed:
        lines += ["", "Assumptions", *(line for each in assumed for line in _item(each))]
    if difference:
        lines += ["", f"Difference to {difference.job}", *_difference(difference)]
    return "\n".join(map(_escape, lines))


def _counted(hosts: Mapping[str, HostPlan]) -> list[str]:
    types = [host.instance_type for host in hosts.values()]
    return [f"{types.count(each)} x {each}" for each in dict.fromkeys(types)]


def _request(request: Mapping[str, Any]) -> Iterator[str]:
    for name, value in request.items():
        yield from _field(name, value, "  ")


def _field(name: str, value: Any, indent: str) -> Iterator[str]:
    """Yield a field in few lines if it fits, else a line for each member."""
    lines = _wrapped(f"{name}: {_json(value)}", indent, indent + "  ")
    if len(lines) <= _MOST_LINES or not value or not isinstance(value, (dict, list)):
        yield from lines
        return
    yield f"{indent}{name}:"
    members = value.items() if isinstance(value, dict) else ((f"[{number}]", each) for number, each in enumerate(value))
    for key, member in members:
        yield from _field(key, member, indent + "  ")


def _source(source: SourcePlan | None) -> Iterator[str]:
    if source is None:
        yield "  none: the image has its own program"
        return
    if source.files is None:
        yield f"  {source.uri}, already stored"
        return
    files = messages.pluralize(len(source.files), "file")
    yield f"  {files}, {messages.format_bytes(source.total or 0)}; packed {messages.format_bytes(source.size or 0)}"
    yield f"  at {source.uri}"
    shown = [f"{name} ({messages.format_bytes(size)})" for name, size in list(source.files.items())[:_MOST_FILES]]
    if len(source.files) > len(shown):
        shown.append(f"and {len(source.files) - len(shown):,} more")
    yield from _item(", ".join(shown))


def _hosts(hosts: Sequence[HostPlan], request: Mapping[str, Any]) -> Iterator[str]:
    if len(hosts) <= _MOST_HOSTS:
        shown, left_out = list(hosts), []
    else:
        shown, left_out = [*hosts[:_FIRST], hosts[-1]], list(hosts[_FIRST:-1])
    for number, host in enumerate(shown):
        if left_out and host is shown[-1]:
            yield from _omitted_hosts(left_out)
        yield from _host(host, shown[0] if number else None, request)


def _omitted_hosts(hosts: Sequence[HostPlan]) -> Iterator[str]:
    kinds: dict[str, int] = {}
    for host in hosts:
        kind = re.sub(r"\d+(-\d+)?", "n", host.roles)
        kinds[kind] = kinds.get(kind, 0) + 1
    counted = "; ".join(f"{count} x {kind or 'the program of the image'}" for kind, count in kinds.items())
    yield f"  {hosts[0].name} to {hosts[-1].name}: {len(hosts)} similar hosts: {counted}"


def _host(host: HostPlan, first: HostPlan | None, request: Mapping[str, Any]) -> Iterator[str]:
    yield f"  {host.name}: {host.roles or 'the program of the image'} ({host.instance_type}, {host.base_dir})"
    yield from _files(host, first, request)
    clusters = _clusters(host)
    for text in clusters:
        known = first is not None and text in _clusters(first)
        yield from _labelled("TF_CONFIG", f"same as {first.name}" if known and first else text)
    for process in host.preparation:
        known = first is not None and process in first.preparation
        yield from _labelled(
            "prepares", f"{process.name}, same as {first.name}" if known and first else _command(process)
        )
    yield from _labelled("waits for", _waits(host.before))
    if host.main:
        yield from _labelled("runs", _command(host.main))
    for process in host.beside:
        yield from _labelled("side process", _command(process))
    for process in host.services:
        yield from _labelled("service", _command(process))
    yield from _labelled("at the end waits for", _waits(host.after))
    for path, content in host.writes.items():
        if path.rpartition("/")[2] == "hosts":
            yield from _labelled("hostfile", ", ".join(_shorten_list(content.splitlines())))


def _files(host: HostPlan, first: HostPlan | None, request: Mapping[str, Any]) -> Iterator[str]:
    for name, content in host.files.items():
        label, known, whose = name.removeprefix(_CONFIG), None, ""
        if first is not None:
            known, whose = first.files.get(name), first.name
        elif label == "hyperparameters.json":
            known, whose = request.get("HyperParameters", {}), "the request"
        if known is None:
            yield from _labelled(label, _json(_shorten(content)))
            continue
        other = {key: value for key, value in content.items() if known.get(key) != value}
        if other or first is None:
            yield from _labelled(label, f"same as {whose}" + (f", but {_json(_shorten(other))}" if other else ""))


def _clusters(host: HostPlan) -> list[str]:
    configs = (process.env.get("TF_CONFIG", "") for process in host.processes)
    return list(dict.fromkeys(_cluster(config)[1] for config in configs if config))


def _cluster(config: str) -> tuple[str, str]:
    """Return the task and the cluster of a TF_CONFIG as text; a value of another form unchanged as cluster."""
    try:
        document = json.loads(config)
        task = document["task"]
        parts = [f"{role} {', '.join(_shorten_list(hosts))}" for role, hosts in document["cluster"].items()]
        return f"{task['type']} {task['index']}", "; ".join(parts)
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", config


def _command(process: Process) -> str:
    variables = [f"{name}={shlex.quote(value)}" for name, value in process.env.items() if name != "TF_CONFIG"]
    task = _cluster(process.env.get("TF_CONFIG", ""))[0]
    return f"{task or process.name}: {' '.join([*variables, shlex.join(process.argv)])}"


def _waits(waits: Sequence[Wait]) -> str:
    return ", then ".join(
        wait.event.replace("_", " ") + (f" (at most {wait.timeout:,.0f} s)" if wait.timeout else "") for wait in waits
    )


def _difference(difference: Difference) -> Iterator[str]:
    for path, change in difference.fields.items():
        if change.before is None:
            yield from _item(f"{path}: {_json(change.after)}, not set before")
        elif change.after is None:
            yield from _item(f"{path}: not set, {_json(change.before)} before")
        else:
            yield from _item(f"{path}: {_json(change.before)} -> {_json(change.after)}")
    for word, names in (("added", difference.added), ("removed", difference.removed), ("changed", difference.changed)):
        if names:
            yield from _item(f"source: {word} {', '.join(_shorten_list(names))}")
    if difference.note:
        yield from _item(difference.note)
    elif difference.is_none:
        yield "  none, except the job's name and what depends on it"


def _item(text: str) -> list[str]:
    return _wrapped(text, "  ", "    ")


def _labelled(label: str, text: str) -> list[str]:
    if not text:
        return []
    return _wrapped(text, f"    {label:<{_LABEL}}", " " * (4 + _LABEL))


def _wrapped(text: str, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        _escape(text),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _shorten(value: Any) -> Any:
    """Truncate long lists and long objects at any depth."""
    if isinstance(value, dict):
        if len(value) > _MOST_ITEMS and all(isinstance(each, dict) for each in value.values()):
            keys = list(value)
            kept = {key: _shorten(value[key]) for key in keys[:_FIRST]}
            return {**kept, f"... {len(keys) - _FIRST - 1} more ...": {}, keys[-1]: _shorten(value[keys[-1]])}
        return {key: _shorten(each) for key, each in value.items()}
    if isinstance(value, list):
        return _shorten_list([_shorten(each) for each in value])
    return value


def _shorten_list(values: Sequence[Any]) -> list[Any]:
    if len(values) <= _MOST_ITEMS:
        return list(values)
    return [*values[:_FIRST], f"... {len(values) - _FIRST - 1} more ...", values[-1]]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _escape(text: str) -> str:
    """Escape characters that are not printable, such as line ends in a name: a terminal would interpret them."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)
