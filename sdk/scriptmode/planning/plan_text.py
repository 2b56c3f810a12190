"""A plan as text: sections of short lines, long lists shortened. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from scriptmode.core.request.parse import parse_request
from scriptmode.core.text import messages
from scriptmode.planning.plan_parts import Difference, HostPlan, SourcePlan
from scriptmode.planning.plan_summary import Row, counted_types
from scriptmode_runtime.plan import ProcessSpec, Wait

#: Characters of a variable that are shown: with many hosts some have thousands.
_LONGEST = 400
_T = TypeVar("_T")
_LABEL = 22
#: Number of items of a list that are shown, and of the first ones that are shown of a longer list, with its last.
_MOST_ITEMS, _FIRST = 6, 3
#: Number of hosts that are shown; of more hosts `_FIRST` and the last one.
_MOST_HOSTS = 5
_MOST_FILES = 8
#: A field of the request that needs more lines has a line for each member.
_MOST_LINES = 2
_CONFIG = "input/config/"


def plan_rows(
    request: Mapping[str, Any],
    hosts: Mapping[str, HostPlan],
    source: SourcePlan | None,
    width: int,
    *,
    assumed: Sequence[str],
    difference: Difference | None,
) -> Iterator[Row]:
    """Yield the rows of the whole text of a plan; ``request`` has no secrets."""
    yield Row(f"Training job {request['TrainingJobName']}: {counted_types(parse_request(request).resources)}")
    yield Row("Request (CreateTrainingJob)")
    for name, value in request.items():
        yield from _field(name, value, "  ", width)
    yield from (Row(""), Row("Source"), *_source(source))
    yield from (Row(""), Row("Hosts"), *_hosts(list(hosts.values()), request))
    if assumed:
        yield from (Row(""), Row("Assumptions"), *map(_item, assumed))
    if difference:
        yield from (Row(""), *difference_rows(difference))


def _field(name: str, value: Any, indent: str, width: int) -> Iterator[Row]:
    """Yield a field in one row if that has few lines, else a row for each member."""
    row = Row(f"{name}: {_json(value)}", indent, indent + "  ")
    if len(row.lines(width)) <= _MOST_LINES or not value or not isinstance(value, (dict, list)):
        yield row
        return
    yield Row(f"{name}:", indent)
    members = value.items() if isinstance(value, dict) else ((f"[{number}]", each) for number, each in enumerate(value))
    for key, member in members:
        yield from _field(key, member, indent + "  ", width)


def _source(source: SourcePlan | None) -> Iterator[Row]:
    if source is None:
        yield _item("none: the image has its own program")
        return
    if source.files is None:
        yield _item(f"{source.uri}, already stored")
        return
    files = messages.pluralize(len(source.files), "file")
    packed = f"; packed {messages.format_bytes(source.size)}" if source.size is not None else ""
    yield _item(f"{files}, {messages.format_bytes(source.total or 0)}{packed}")
    yield Row(source.uri, "  at ")
    shown = [f"{name} ({messages.format_bytes(size)})" for name, size in list(source.files.items())[:_MOST_FILES]]
    if len(source.files) > len(shown):
        shown.append(f"and {len(source.files) - len(shown):,} more")
    yield _item(", ".join(shown))


def _hosts(hosts: Sequence[HostPlan], request: Mapping[str, Any]) -> Iterator[Row]:
    shown = shown_hosts(hosts)
    left_out = hosts[_FIRST:-1] if len(shown) < len(hosts) else []
    for number, host in enumerate(shown):
        if left_out and host is shown[-1]:
            yield from _omitted_hosts(left_out)
        yield from _host(host, shown[0] if number else None, request)


def shown_hosts(hosts: Sequence[_T]) -> list[_T]:
    """Return the hosts that the whole text shows: all of a few, else the first ones and the last one."""
    return list(hosts) if len(hosts) <= _MOST_HOSTS else [*hosts[:_FIRST], hosts[-1]]


def _omitted_hosts(hosts: Sequence[HostPlan]) -> Iterator[Row]:
    kinds: dict[str, int] = {}
    for host in hosts:
        kind = re.sub(r"\d+(-\d+)?", "n", host.roles)
        kinds[kind] = kinds.get(kind, 0) + 1
    counted = "; ".join(f"{count} x {kind or 'the program of the image'}" for kind, count in kinds.items())
    yield _item(f"{hosts[0].name} to {hosts[-1].name}: {len(hosts)} similar hosts: {counted}")


def _host(host: HostPlan, first: HostPlan | None, request: Mapping[str, Any]) -> Iterator[Row]:
    yield _item(f"{host.name}: {host.roles or 'the program of the image'} ({host.instance_type}, {host.base_dir})")
    yield from _files(host, first, request)
    yield from _variables(host, first)
    for text in _clusters(host):
        yield from _labelled("TF_CONFIG", f"same as {first.name}" if first and text in _clusters(first) else text)
    for process in host.preparation:
        same = f"{process.name}, same as {first.name}" if first and process in first.preparation else ""
        yield from _labelled("prepares", same or _command(process))
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


def _files(host: HostPlan, first: HostPlan | None, request: Mapping[str, Any]) -> Iterator[Row]:
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


def _variables(host: HostPlan, first: HostPlan | None) -> Iterator[Row]:
    known = first.variables if first else {}
    for name, text in host.variables.items():
        if known.get(name) != text:
            shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
            yield Row(f"{name}={shown}", "    ", " " * (4 + _LABEL))
    if host.variables and first:
        yield from _labelled("other variables", f"same as {first.name}")


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


def _command(process: ProcessSpec) -> str:
    variables = [f"{name}={shlex.quote(value)}" for name, value in process.env.items() if name != "TF_CONFIG"]
    task = _cluster(process.env.get("TF_CONFIG", ""))[0]
    return f"{task or process.name}: {' '.join([*variables, shlex.join(process.argv)])}"


def _waits(waits: Sequence[Wait]) -> str:
    return ", then ".join(
        wait.event.replace("_", " ") + (f" (at most {wait.timeout:,.0f} s)" if wait.timeout else "") for wait in waits
    )


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


def _labelled(label: str, text: str) -> Iterator[Row]:
    if text:
        yield Row(text, f"    {label:<{_LABEL}}", " " * (4 + _LABEL))


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
