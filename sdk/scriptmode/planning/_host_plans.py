"""The plans that the runtime makes of a job's hosts, from a platform's files and variables, and the hosts' roles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from scriptmode._core.aws.instance_gpus import gpu_count
from scriptmode._core.request.parse import parse_request
from scriptmode._core.spec.host_values import PlannedHost
from scriptmode._core.spec.hosts import LOCAL_PROCESS
from scriptmode._core.spec.job_request import JobRequest
from scriptmode.errors import PlatformError, SpecError
from scriptmode.planning._plan_parts import HostPlan
from scriptmode_local._opt_ml import planned_containers
from scriptmode_runtime import contract
from scriptmode_runtime._environment import TrainingEnvironment
from scriptmode_runtime._launch import preview
from scriptmode_runtime._values.errors import RuntimeFailure

#: What the runtime raises for a host that would refuse to run, and for values of other types, in a job that another
#: client described.
RUNTIME_ERRORS = (RuntimeFailure, AttributeError, LookupError, OSError, TypeError, ValueError)


def host_environment(host: PlannedHost, source: Mapping[str, str] | None = None) -> TrainingEnvironment:
    """Return what the runtime reads on a host; ``source`` has texts of files by their names."""
    gpus = host.gpus
    if gpus is None and not host.python and host.instance_type != LOCAL_PROCESS:
        gpus = gpu_count(host.instance_type) or 0
    here = preview.host_environment(host.base_dir, host.files, host.variables, gpus=gpus, python=host.python)
    return here._replace(source=source or {})


class HostPlans(Mapping[str, HostPlan]):
    """The plans of hosts by their names, without secrets, each made when it is asked for.

    Each plan names all hosts several times: to make all plans takes time and memory with the square of their number.
    """

    def __init__(self, job: JobRequest, hosts: Mapping[str, PlannedHost], source: Mapping[str, str]) -> None:
        """Plan the first and the last host of each group.

        Raises `SpecError` with the runtime's message for a host that would refuse to run, and `PlatformError` for a job
        that another client described with values of other types.
        """
        self._hosts = hosts
        self._source = source
        self._has_script = bool(job.program)
        self._made: dict[str, HostPlan] = {}
        groups = job.resources.host_groups if job.program else ()
        variables = [host.variables for host in hosts.values()]
        named = [job.hyperparameters, job.environment]
        self.hide = preview.redaction_of((), variables, named)
        environments = []
        for group in groups:
            with self._refusals(group.hosts[0]):
                environments.append(host_environment(hosts[group.hosts[0]], source))
        self.hide = preview.redaction_of(environments, variables, named)
        # The hosts of a group differ by their numbers alone: what one of them refuses, all do.
        _ = [self[name] for group in groups for name in (group.hosts[0], group.hosts[-1])]

    def __getitem__(self, name: str) -> HostPlan:
        """Return the plan of a host."""
        if name not in self._made:
            host = self._hosts[name]
            parts: list[Any] = [host.instance_type, host.base_dir, host.files]
            if self._has_script:
                with self._refusals(name):
                    parts += preview.preview(host_environment(host, self._source))
            self._made[name] = HostPlan(*self.hide.document(parts))
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)

    @contextmanager
    def _refusals(self, host: str) -> Iterator[None]:
        """Raise the runtime's errors about a host as the SDK's, without secrets."""
        try:
            yield
        except RuntimeFailure as error:
            raise SpecError(f"{host} would refuse to run: {self.hide(str(error))}") from None
        except RUNTIME_ERRORS as error:
            raise PlatformError(f"the hosts' runtime cannot plan the job: {self.hide(repr(error))}") from None


def host_roles(description: Mapping[str, object]) -> dict[str, str]:
    """Return the roles of each host of a job, in the order of the hosts, such as ``chief, worker, ps``.

    MPI ranks are numbered (``mpirun, ranks 0-3``), and so are equal workers (``worker 1``); a host that trains alone is
    ``script``.

    Args:
        description: Response of DescribeTrainingJob, or a CreateTrainingJob request.

    Returns:
        Roles by the name of the host; empty if they are unknown: for an algorithm without script mode, or a job that
        the runtime would refuse.
    """
    return job_roles(parse_request(description))


def job_roles(job: JobRequest) -> dict[str, str]:
    """Return the roles of each host of a job, as `host_roles` does."""
    if not job.resources.hosts or contract.PROGRAM not in job.hyperparameters:
        return {}
    kind = job.resources.host_kind
    counts_gpus = contract.enabled(job.hyperparameters.get(contract.MPI_ENABLED, ""))
    if kind.is_scheduled and counts_gpus and contract.MPI_PROCESSES_PER_HOST not in job.hyperparameters:
        # The number of ranks is that of a node's GPUs, which only the nodes know.
        return {}
    cluster = None if kind.runs_images or kind.is_scheduled else {"hosts": {}, "single_machine": True, "secret": ""}
    hosts = planned_containers.plan_container_hosts(job, job.environment, cluster)
    try:
        return {name: preview.roles(host_environment(host)) for name, host in hosts.items()}
    except RUNTIME_ERRORS:
        return {}
