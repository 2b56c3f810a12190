"""The hosts of each TensorFlow role, where a job gives its instance groups to roles. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode_runtime import contract
from scriptmode_runtime._values.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The roles with exactly one host.
_ALONE = ("master", "chief", "evaluator")


class _Rule(NamedTuple):
    """The requirements of one kind of cluster on its roles."""

    name: str
    evaluator: str
    known: tuple[str, ...]
    #: Exactly one of them.
    leads: tuple[str, ...]
    #: At least one host each.
    needed: tuple[str, ...]


_BETWEEN_GRAPH = _Rule(
    contract.PARAMETER_SERVER_ROLES,
    contract.PARAMETER_SERVER_EVALUATOR,
    known=contract.ROLES,
    leads=("master", "chief"),
    needed=("ps",),
)
_COORDINATOR = _BETWEEN_GRAPH._replace(
    known=("chief", "worker", "ps", "evaluator"), leads=("chief",), needed=("worker", "ps")
)
_MIRRORED = _Rule(
    contract.MULTI_WORKER_MIRRORED_ROLES,
    contract.MULTI_WORKER_MIRRORED_EVALUATOR,
    known=("chief", "worker", "evaluator"),
    leads=(),
    needed=("worker",),
)


def assign_roles(
    framework: dict[str, object], strategy: str, resource_config: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """Return the hosts of each role, in the order of `contract.ROLES`; {} where the job has no roles.

    The groups with a role are the ones that train together: they are set in ``framework``, unless it has them already.
    Raises `ConfigurationError` for roles that do not form a cluster.
    """
    rule = {contract.PARAMETER_SERVER: _BETWEEN_GRAPH, contract.MULTI_WORKER_MIRRORED: _MIRRORED}.get(strategy)
    if rule is _BETWEEN_GRAPH and contract.enabled(framework.get(contract.PARAMETER_SERVER_COORDINATOR)):
        rule = _COORDINATOR
    if rule is None or framework.get(rule.name) is None:
        return {}
    named = _groups(rule, framework[rule.name])
    _check_conflicts(rule, framework, [group for groups in named.values() for group in groups])
    group_hosts = {group["instance_group_name"]: group["hosts"] for group in resource_config.get("instance_groups", [])}
    hosts = {role: tuple(_hosts(rule, role, groups, group_hosts)) for role, groups in named.items()}
    _check_cluster(rule, hosts)
    return {role: hosts[role] for role in contract.ROLES if role in hosts}


def _groups(rule: _Rule, value: object) -> dict[str, list[str]]:
    if not isinstance(value, dict):
        raise ConfigurationError(
            f"{rule.name} is {value!r}; it is an object of roles and their instance groups, "
            'such as {"ps": ["large", "small"]}'
        )
    named: dict[str, list[str]] = {}
    roles: dict[str, str] = {}
    for role, groups in value.items():
        if role not in rule.known:
            raise ConfigurationError(f"{rule.name} has the role {role!r}; the roles here are {', '.join(rule.known)}")
        if not isinstance(groups, (str, list)) or not groups:
            raise ConfigurationError(f"{rule.name}: {role} is {groups!r}; it is a list of names of instance groups")
        named[role] = [groups] if isinstance(groups, str) else list(map(str, groups))
        for group in named[role]:
            if group in roles:
                raise ConfigurationError(
                    f"{rule.name} names the group {group!r} twice, for {roles[group]} and {role}; a host has one role"
                )
            roles[group] = role
    return named


def _check_conflicts(rule: _Rule, framework: dict[str, object], groups: list[str]) -> None:
    if contract.enabled(framework.get(rule.evaluator)):
        raise ConfigurationError(
            f"{rule.evaluator} and {rule.name} both place the evaluator; leave out the first, and give the role "
            "evaluator a group"
        )
    together = framework.setdefault(contract.DISTRIBUTION_INSTANCE_GROUPS, groups)
    if not isinstance(together, list) or set(together) != set(groups):
        raise ConfigurationError(
            f"{contract.DISTRIBUTION_INSTANCE_GROUPS} is {together!r}, and {rule.name} gives roles to {groups}; "
            "leave out the first"
        )


def _hosts(rule: _Rule, role: str, groups: list[str], group_hosts: Mapping[str, list[str]]) -> list[str]:
    for group in groups:
        if group not in group_hosts:
            raise ConfigurationError(
                f"{rule.name}: {role} names the instance group {group!r}, which the job does not have; "
                f"its groups are {', '.join(map(repr, group_hosts))}"
            )
    return [str(host) for group in groups for host in group_hosts[group]]


def _check_cluster(rule: _Rule, hosts: dict[str, tuple[str, ...]]) -> None:
    leads = [role for role in rule.leads if role in hosts]
    if rule.leads and len(leads) != 1:
        raise ConfigurationError(
            f"{rule.name} names {' and '.join(leads) or 'no role that leads'}; "
            f"give one of {', '.join(rule.leads)} a group of one host"
        )
    if "master" in leads and "evaluator" in hosts:
        raise ConfigurationError(f"{rule.name} names master and evaluator; a master evaluates itself, call it chief")
    for role in rule.needed:
        if role not in hosts:
            raise ConfigurationError(f"{rule.name} has no {role}, which this cluster needs; give it a group")
    for role in _ALONE:
        if len(hosts.get(role, ("one",))) != 1:
            raise ConfigurationError(f"{rule.name}: {role} has {len(hosts[role])} hosts; give it a group of one")
