"""The hosts of each TensorFlow role, where a job gives its instance groups to roles. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scriptmode_runtime import contract
from scriptmode_runtime._values.errors import ConfigurationError

_PARAMETERS = {
    contract.PARAMETER_SERVER: contract.PARAMETER_SERVER_ROLES,
    contract.MULTI_WORKER_MIRRORED: contract.MULTI_WORKER_MIRRORED_ROLES,
}
#: The roles that run the script in a cluster; one of them has a host.
_TRAINING = frozenset({"master", "chief", "worker"})


def assign_roles(
    framework: dict[str, object], strategy: str, resource_config: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """Return the hosts of each role, in the order of `contract.ROLES`; {} where the job has no roles.

    The groups with a role are the ones that train together: they are set in ``framework``. The SDK has an
    error for each fault; `ConfigurationError` is raised here for all that cannot be a cluster.
    """
    name = _PARAMETERS.get(strategy, "")
    roles: Any = framework.get(name)
    if roles is None:
        return {}
    hosts = {group["instance_group_name"]: group["hosts"] for group in resource_config.get("instance_groups", [])}
    try:
        groups = {role: [given] if isinstance(given, str) else list(given) for role, given in roles.items()}
        of_roles = {role: tuple(str(host) for group in groups[role] for host in hosts[group]) for role in groups}
    except (AttributeError, KeyError, TypeError):
        of_roles = {}
    every = [host for given in of_roles.values() for host in given]
    is_cluster = all(of_roles.values()) and len(set(every)) == len(every) and set(of_roles) <= set(contract.ROLES)
    leads = [host for role in ("master", "chief") for host in of_roles.get(role, ())]
    if not (is_cluster and _TRAINING.intersection(of_roles)) or len(leads) > 1:
        raise ConfigurationError(
            f"{name} is {roles!r}; it is an object of roles ({', '.join(contract.ROLES)}) and lists of the job's "
            f"instance groups ({', '.join(hosts)})"
        )
    framework[contract.DISTRIBUTION_INSTANCE_GROUPS] = [group for given in groups.values() for group in given]
    return {role: of_roles[role] for role in contract.ROLES if role in of_roles}
