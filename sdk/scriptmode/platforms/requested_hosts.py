"""Functions of a CreateTrainingJob request: its hosts and groups, and which host gets which channel. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scriptmode.data.channel_source import input_mode
from scriptmode.platforms.base import instance_groups
from scriptmode.spec.hosts import LOCAL_CONTAINER
from scriptmode_runtime.contract import HOMOGENEOUS_GROUP, MODEL_DIR_PARAMETER, decode

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class HostGroup:
    """Hosts of one instance type."""

    name: str
    instance_type: str
    hosts: tuple[str, ...]


def host_groups(request: Mapping[str, Any]) -> tuple[HostGroup, ...]:
    """Return the request's groups of hosts; the hosts are numbered through all groups in order."""
    resources = request["ResourceConfig"]
    parts = resources.get("InstanceGroups") or [{**resources, "InstanceGroupName": HOMOGENEOUS_GROUP}]
    found: list[HostGroup] = []
    first = 1
    for part in parts:
        numbers = range(first, first + int(part["InstanceCount"]))
        hosts = tuple(f"algo-{number}" for number in numbers)
        found.append(HostGroup(part["InstanceGroupName"], part["InstanceType"], hosts))
        first = numbers.stop
    return tuple(found)


def hosts(request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the name of every host, in order."""
    return tuple(host for group in host_groups(request) for host in group.hosts)


def has_container_hosts(request: Mapping[str, Any]) -> bool:
    """Return whether the hosts are containers of this machine."""
    return any(group.get("InstanceType") in LOCAL_CONTAINER for group in instance_groups(request))


def model_dir_parameter(request: Mapping[str, Any]) -> str:
    """Return the script's hyperparameter ``model_dir``; "" where there is none or it is not a string."""
    value = decode(request.get("HyperParameters", {}).get(MODEL_DIR_PARAMETER, ""))
    return value if isinstance(value, str) else ""


def uris_read_while_training(request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the S3 URIs of the channels that are read while the hosts run: those in Pipe and FastFile mode."""
    return tuple(
        channel["DataSource"]["S3DataSource"]["S3Uri"]
        for channel in request.get("InputDataConfig", ())
        if "S3DataSource" in channel["DataSource"] and input_mode(request, channel) != "File"
    )


def channel_hosts(request: Mapping[str, Any], channel: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the hosts that a channel is for."""
    # A file system is for every host.
    wanted = channel["DataSource"].get("S3DataSource", {}).get("InstanceGroupNames")
    return tuple(host for group in host_groups(request) if not wanted or group.name in wanted for host in group.hosts)
