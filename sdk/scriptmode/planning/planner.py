"""Creation of a plan from what an estimator would submit. Stores nothing."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from scriptmode.core.platforms.base import Platform, WritesScripts
from scriptmode.core.request.render import render_request
from scriptmode.core.source.rule_files import RuleFile
from scriptmode.core.source.source_archive import Source
from scriptmode.core.spec.inputs import TrainingInput
from scriptmode.core.spec.job_request import JobRequest
from scriptmode.errors import PlatformError
from scriptmode.planning import archive_contents, assumptions
from scriptmode.planning.archive_contents import ArchiveContents
from scriptmode.planning.host_plans import HostPlans
from scriptmode.planning.job_plan import Plan
from scriptmode.planning.plan_parts import SourcePlan
from scriptmode.planning.runtime_query import RuntimeQuery
from scriptmode_runtime import contract

_FILE = "file://"
_PARAMETERS = contract.HYPERPARAMETERS_FILE


class _Source(NamedTuple):
    plan: SourcePlan | None = None
    contents: ArchiveContents | None = None
    #: Reason why it was not opened.
    note: str = ""


def create_plan(
    platform: Platform,
    job: JobRequest,
    sent: tuple[Source, str] | None,
    rule_files: Sequence[RuleFile],
    against: Any = None,
) -> Plan:
    """Create a plan of what `Estimator.fit` would send, compared with the job ``against``, a `scriptmode.TrainingJob`.

    ``sent`` is the source with its archive's URI. Raises `SpecError` with the runtime's message for what the hosts
    would refuse, and what the platform raises.
    """
    request, hosts = copy.deepcopy(render_request(job)), platform.planned_hosts(job)
    source = _source(platform, job, sent, is_compared=against is not None)
    comparison = None
    if against is not None:
        from scriptmode.planning import difference

        comparison = difference.compare(against, request, source.contents)
    before = comparison.before if comparison else {}
    on_this_machine = any(host.python for host in hosts.values())
    known = assumptions.NO_ASSUMPTIONS if on_this_machine else assumptions.assumptions_for(job, job.resources.types)
    query = RuntimeQuery(
        hosts if job.program else {},
        known,
        source.contents.texts if source.contents else {},
        # The compared job's may hold secrets, too.
        [job.hyperparameters, job.environment, before.get("HyperParameters", {}), before.get("Environment", {})],
    )
    groups = job.resources.host_groups if job.program else ()
    environments = [query.environment(group.hosts[0]) for group in groups]
    hide = query.redaction(environments)
    planned = HostPlans(hosts, query, hide)
    # The hosts of a group differ by their numbers alone: what one of them refuses, all do.
    _ = [planned[name] for group in groups for name in (group.hosts[0], group.hosts[-1])]
    strategies = {here.strategy for here in environments}
    limitations = dict.fromkeys(host.limitation for host in hosts.values())
    notes = [*assumptions.list_assumptions(job, known, strategies), source.note, *_unchecked_inputs(job), *limitations]
    if job.resources.host_kind.is_scheduled and on_this_machine:
        notes.append("the nodes have the programs of this machine, such as Python and mpirun, at the same paths")
    notes += [f"rule {file.rule!r}: {file.path} is stored at {file.uri}" for file in rule_files]
    if any(contract.SECRET_VARIABLE in host.variables for host in hosts.values()):
        notes.append(f"Environment.{contract.SECRET_VARIABLE} is generated and added when the job starts")
    return Plan(
        request,
        planned,
        source.plan,
        tuple(filter(None, notes)),
        comparison.difference(hide) if comparison else None,
        hide.document(request),
        platform.planned_script(job) if isinstance(platform, WritesScripts) else "",
    )


def _unchecked_inputs(job: JobRequest) -> Iterator[str]:
    """Yield an assumption for each input that is only checked when the job starts; directories are checked earlier."""
    for channel in job.channels if job.resources.host_kind.is_local else ():
        source = channel.source
        if isinstance(source, TrainingInput) and not source.s3_data.startswith(_FILE):
            yield f"channel {channel.name!r}: {source.s3_data} exists, and this machine's credentials may read it"


def _source(platform: Platform, job: JobRequest, sent: tuple[Source, str] | None, *, is_compared: bool) -> _Source:
    if sent is not None:
        source, uri = sent
        if source.archive is None:
            return _opened(uri, archive_contents.read_unpacked(source, job.program, is_compared=is_compared))
        return _opened(uri, archive_contents.read_archive(source.archive.data, job.program))
    stored = job.source_uri
    if stored is None:
        return _Source()
    assumed = "assumed to have no requirements.txt and not to be a package"
    if not (is_compared or stored.startswith(_FILE)):
        return _Source(SourcePlan(stored), note=f"the source at {stored} is not opened: {assumed}")
    try:
        return _opened(stored, archive_contents.fetch_archive(platform, stored, job.program))
    except PlatformError as error:
        return _Source(SourcePlan(stored), note=f"the source at {stored} cannot be opened: {assumed} ({error})")


def _opened(uri: str, contents: ArchiveContents) -> _Source:
    return _Source(SourcePlan(uri, contents.sizes, contents.size, contents.digest), contents)
