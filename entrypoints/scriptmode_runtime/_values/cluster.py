"""The hosts that train together: their names and addresses, and which one this is. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from scriptmode_runtime import contract
from scriptmode_runtime._values.errors import ConfigurationError


class Host(NamedTuple):
    """One host: its name in the job, its address, its root directory and its port for each role."""

    name: str
    address: str
    base_dir: str
    ports: Mapping[str, int]

    def endpoint(self, role: str) -> str:
        """Return ``address:port`` of this host's task in ``role``, in the form of a cluster specification."""
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{address}:{self.ports[role]}"


class Cluster(NamedTuple):
    """The hosts that train together, in the platform's order; the first host, or that of the first role, leads."""

    hosts: tuple[Host, ...]
    this: Host
    single_machine: bool = False
    isolate_requirements: bool = False
    secret: str = ""
    #: Where the job gives roles to whole instance groups: the hosts of each, in the order of `contract.ROLES`.
    roles: Mapping[str, tuple[Host, ...]] = {}

    @property
    def position(self) -> int:
        """Position of this host among the hosts."""
        return self.hosts.index(self.this)

    @property
    def lead(self) -> Host:
        """The host that runs the master, the chief or ``mpirun``, and that the others report to."""
        return next(iter(self.roles.values()), self.hosts)[0]

    @property
    def leads(self) -> bool:
        """Whether this host is the leading one."""
        return self.this.name == self.lead.name


def parse(
    document: Mapping[str, Any] | None,
    names: Sequence[str],
    current: str,
    base_dir: str,
    *,
    roles: Mapping[str, Sequence[str]] | None = None,
) -> Cluster:
    """Parse `contract.CLUSTER_FILE` into the cluster of ``names``; None is SageMaker, where host names resolve.

    ``roles`` are `Cluster.roles` with the names of their hosts. Raises `ConfigurationError` for a current host that is
    not in ``names``, or a document of another shape.
    """
    document = document or {}
    entries = document.get("hosts", {})
    try:
        hosts = {name: _host(name, entries.get(name, {}), base_dir) for name in names}
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{contract.CLUSTER_FILE} is malformed: {error}") from error
    if current not in hosts:
        raise ConfigurationError(
            f"{contract.RESOURCE_CONFIG_FILE}: current_host {current!r} is not one of hosts {list(names)}"
        )
    return Cluster(
        hosts=tuple(hosts.values()),
        this=hosts[current],
        single_machine=bool(document.get("single_machine")),
        isolate_requirements=bool(document.get("isolate_requirements")),
        secret=str(document.get("secret", "")),
        roles={role: tuple(hosts[name] for name in members) for role, members in (roles or {}).items()},
    )


def _host(name: str, entry: Mapping[str, Any], base_dir: str) -> Host:
    if not entry:
        return Host(name, name, base_dir, contract.DEFAULT_PORTS)
    ports = {role: int(port) for role, port in entry.get("ports", {}).items()}
    return Host(
        name=name,
        address=str(entry.get("address", name)),
        base_dir=str(entry.get("base_dir", base_dir)),
        ports={**contract.DEFAULT_PORTS, **ports},
    )
