"""What the hosts of a job do: the resources that the agent recorded, and how their logs grow."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode._core.spec.host_values import HostActivity
from scriptmode_local._data import regular_files
from scriptmode_local._data.durable import replace_file
from scriptmode_local._store import shapes
from scriptmode_local._store.host_logs import unfinished_line

if TYPE_CHECKING:
    from scriptmode_local._store.job_store import JobFolder

#: Seconds after which a record is not of the present any more; a new one comes every `_agent.usage.SAMPLE_SECONDS`.
_STALE_SECONDS = 15.0
_SHAPE = {"*": {"*": object}}
#: The fields of an activity that are recorded; the others are read from the hosts' logs.
_RECORDED = tuple(field.name for field in fields(HostActivity) if field.name.endswith(("_percent", "_bytes")))


def write_usage(path: Path, usage: Mapping[str, HostActivity]) -> None:
    """Record the resources of the hosts that run, and create the directory; raise ``OSError``."""
    content = {host: {name: getattr(activity, name) for name in _RECORDED} for host, activity in usage.items()}
    with suppress(FileExistsError):
        path.parent.mkdir()
    replace_file(path, json.dumps(content).encode(), durable=False)


def read_activity(folder: JobFolder) -> dict[str, HostActivity]:
    """Return what each host with a log does; only its place for a job that has ended or is interrupted.

    Only a host of which the record has resources is silent: another one does not run yet, or has ended. A record that
    cannot be read is ignored, as it is only displayed.
    """
    state = folder.read_state()
    if state.ended or state.secondary == "Interrupted":
        return {host: HostActivity(place=place) for host, place in folder.read_places().items()}
    hosts, places = folder.read_facts().host_names, folder.read_places()
    usage = {name: recorded for host in hosts for name, recorded in _read_usage(folder.usage_file(host)).items()}
    activities = {}
    for host in hosts:
        log = folder.log(host)
        activity = replace(usage.get(host, HostActivity()), line=unfinished_line(log), place=places.get(host, ""))
        if host in usage:
            activity = replace(activity, silent_seconds=_seconds_since_change(log))
        if activity != HostActivity():
            activities[host] = activity
    return activities


def _read_usage(path: Path) -> dict[str, HostActivity]:
    try:
        age = _seconds_since_change(path)
        if age is None or age > _STALE_SECONDS:
            return {}
        content = regular_files.read_json(path)
        shapes.validate_shape(content, _SHAPE, "")
        usage = {
            host: {name: row[name] for name in _RECORDED if shapes.is_number(row.get(name))}
            for host, row in content.items()
        }
        return {host: HostActivity(**numbers) for host, numbers in usage.items()}
    except (OSError, ValueError, TypeError):
        return {}


def _seconds_since_change(path: Path) -> float | None:
    try:
        # A file server's clock may be ahead of this machine's.
        return max(0.0, round(time.time() - path.stat().st_mtime, 1))
    except OSError:
        return None
