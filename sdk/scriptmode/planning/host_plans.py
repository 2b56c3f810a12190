"""The plans of a job's hosts, each made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scriptmode.core.spec.service_values import PlannedHost
from scriptmode.planning.plan_parts import HostPlan
from scriptmode.planning.runtime_query import RuntimeQuery
from scriptmode_runtime import contract
from scriptmode_runtime.report.redaction import Redaction

_PARAMETERS = contract.HYPERPARAMETERS_FILE


class HostPlans(Mapping[str, HostPlan]):
    """The plans of hosts by their names, without secrets.

    Each plan names all hosts several times: to make all plans takes time and memory with the square of their number.
    """

    def __init__(self, hosts: Mapping[str, PlannedHost], query: RuntimeQuery, hide: Redaction) -> None:
        self._hosts = hosts
        self._query = query
        self._hide = hide
        self._made: dict[str, HostPlan] = {}

    def __getitem__(self, name: str) -> HostPlan:
        """Return the plan of a host; raise `SpecError` for what it would refuse."""
        if name not in self._made:
            self._made[name] = self._create(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)

    def _create(self, name: str) -> HostPlan:
        host = self._hosts[name]
        files = {**host.files, _PARAMETERS: self._hide.document(host.files[_PARAMETERS])}
        if name not in self._query.hosts:
            return HostPlan(name, "", host.instance_type, host.base_dir, files)
        found = self._hide.document(self._query.preview(name))
        plan, content = found.plan, (found.files, found.variables, found.program)
        processes = (found.preparation, plan.main, plan.side_processes, plan.services, plan.before, plan.after)
        return HostPlan(name, found.roles, host.instance_type, host.base_dir, files, *processes, *content)
