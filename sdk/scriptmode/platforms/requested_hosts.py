"""Which hosts a request asks for, in which groups. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scriptmode.data.channel_source import input_mode
from scriptmode.platforms.base import LOCAL_CONTAINER, instance_groups
from scriptmode_runtime.contract import HOMOGENEOUS_GROUP, MODEL_DIR_PARAMETER, decode

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Group:
    """Hosts of one instance type."""

    name: str
    instance_type: str
    hosts: tuple[str, ...]


def groups(request: Mapping[str, Any]) -> tuple[Group, ...]:
    """Give the request's groups; hosts are numbered through them in order."""
    resources = request["ResourceConfig"]
    parts = resources.get("InstanceGroups") or [{**resources, "InstanceGroupName": HOMOGENEOUS_GROUP}]
    found: list[Group] = []
    first = 1
    for part in parts:
        numbers = range(first, first + int(part["InstanceCount"]))
        hosts = tuple(f"algo-{number}" for number in numbers)
        found.append(Group(part["InstanceGroupName"], part["InstanceType"], hosts))
        first = numbers.stop
    return tuple(found)


def hosts(request: Mapping[str, Any]) -> tuple[str, ...]:
    """Give every host's name, in order."""
    return tuple(host for group in groups(request) for host in group.hosts)


def is_in_containers(request: Mapping[str, Any]) -> bool:
    """Say whether each host is a container, not a process."""
    return any(group.get("InstanceType") in LOCAL_CONTAINER for group in instance_groups(request))


def told_model_dir(request: Mapping[str, Any]) -> str:
    """Give what the script is told as ``model_dir``; "" where that is no text."""
    value = decode(request.get("HyperParameters", {}).get(MODEL_DIR_PARAMETER, ""))
    return value if isinstance(value, str) else ""


def served_uris(request: Mapping[str, Any]) -> tuple[str, ...]:
    """Give what channels that are read while the hosts run name: those in Pipe and FastFile mode."""
    return tuple(
        channel["DataSource"]["S3DataSource"]["S3Uri"]
        for channel in request.get("InputDataConfig", ())
        if "S3DataSource" in channel["DataSource"] and input_mode(request, channel) != "File"
    )


def channel_hosts(request: Mapping[str, Any], channel: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the hosts that a channel is for."""
    # A file system is for every host.
    wanted = channel["DataSource"].get("S3DataSource", {}).get("InstanceGroupNames")
    return tuple(host for group in groups(request) if not wanted or group.name in wanted for host in group.hosts)
