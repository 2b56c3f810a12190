"""The engine of the instance type ``kubernetes``."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scriptmode import FileSystemInput
from scriptmode.engines import CREDENTIALS, Engine, Problem, StopReason, StreamKeys, Termination, plan_container_hosts
from scriptmode.errors import PlatformError, SpecError, invalid
from scriptmode_kubernetes._engine import pods, status
from scriptmode_kubernetes._engine.api import Api, ApiError, find_access
from scriptmode_kubernetes._engine.pods import names_of
from scriptmode_kubernetes._engine.settings import KubernetesSettings, parse_settings, settings_from_json

if TYPE_CHECKING:
    from scriptmode.engines import Fleet, HostSettings, Job, JobFolder, JobRequest, PlannedHost, Tasks, TrainingJobSpec

#: Names and addresses by which a machine knows itself alone.
_OF_THIS_MACHINE = ("0.0.0.0", "127.0.0.1", "::", "::1", "localhost")  # noqa: S104 - nothing listens
#: Seconds in which a node that works has deleted a pod, and between two looks.
_DELETION_SECONDS, _POLL_SECONDS = 10.0, 0.2
#: The file of a job's directory that is there while the cluster may have objects of the job.
OBJECTS_FILE = "kubernetes.objects"
#: The file that says why the cluster ended a pod of the job, or that it ended none.
_END_FILE = "termination.json"


def open_api(settings: KubernetesSettings) -> Api:
    """Return the API of the settings' cluster and namespace; raise `ConfigError` without a cluster."""
    return Api(find_access(settings.context), settings.namespace)


def host_variables(job: Job, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of every host: the credentials among the inherited ones, the request's and the job's."""
    own = {name: inherited[name] for name in CREDENTIALS if name in inherited}
    return job.variables({**own, **job.request.environment})


def with_address(variables: Mapping[str, str], address: str) -> dict[str, str]:
    """Return variables in which servers of this machine have the address that pods reach."""
    changed = dict(variables)
    for name in (variable for variable in CREDENTIALS if variable in changed):
        parts = urlsplit(changed[name])
        if parts.hostname in _OF_THIS_MACHINE:
            host = f"[{address}]" if ":" in address else address
            changed[name] = parts._replace(netloc=f"{host}:{parts.port}").geturl()
    return changed


def record_end(api: Api, folder: JobFolder, job: Job) -> bool:
    """Record why the cluster ended a pod of a job, before the pods are deleted; return whether it did, or raise."""
    try:
        termination = find_termination(api, folder, job)
    except ApiError as error:
        if error.may_pass:
            raise
        termination = None
    with suppress(OSError):
        content = [termination.reason.value, termination.text] if termination else []
        (folder.channels / _END_FILE).write_text(json.dumps(content), encoding="utf-8")
    return termination is not None


def find_termination(api: Api, folder: JobFolder, job: Job) -> Termination | None:
    """Return why the cluster ended a pod of a job, None where it ended none; raise `ApiError`."""
    listed = api.list("pods", labelSelector=names_of(folder).selector)["items"]
    found = {pod["metadata"]["labels"][pods.HOST_LABEL]: pod for pod in listed}
    return status.find_termination({host: found.get(host) for host in job.request.resources.hosts})


class KubernetesEngine(Engine):
    """Engine of ``kubernetes``, whose jobs have their agents beside the service."""

    def why_terminated(self, folder: JobFolder, *, was_signalled: bool) -> Termination | None:
        """Return why the cluster ended a pod of the job, or that this machine goes down."""
        if was_signalled:
            return super().why_terminated(folder, was_signalled=was_signalled)
        with suppress(OSError, ValueError):
            # Of pods that the job's agent deleted since.
            content = json.loads((folder.channels / _END_FILE).read_text(encoding="utf-8"))
            return Termination(StopReason(content[0]), content[1]) if content else None
        job = folder.read_job()
        with suppress(PlatformError):
            return find_termination(open_api(settings_from_json(job.engine)), folder, job)
        return None

    def complete(self, spec: TrainingJobSpec, settings: HostSettings) -> TrainingJobSpec:
        """Fill in the image; raise `SpecError` without one, and `ConfigError` without access to a cluster."""
        own = parse_settings(settings.options, os.environ)
        image = spec.algorithm.image_uri or own.image
        if not image:
            advice = "give the image of the hosts, which are pods, or Kubernetes(image=...) or SCRIPTMODE_KUBERNETES"
            raise invalid("image_uri", "is missing", advice)
        if settings.container_limits:
            what = f"container_limits is {settings.container_limits!r}, but the hosts are pods"
            raise SpecError(what, "leave it out, and give Kubernetes(resources=...)", argument="container_limits")
        groups = [group.name for group in spec.resources.host_groups]
        # Those of the variable are for all jobs.
        if unknown := parse_settings(settings.options, {}).group_resources.keys() - groups:
            what = f"has {min(unknown)!r}, which is no instance group of the job: it has {', '.join(groups)}"
            raise invalid("group_resources", what, "correct the name")
        open_api(own)
        # It needs a package, which the agent of the job would miss.
        StreamKeys.create()
        return replace(spec, algorithm=replace(spec.algorithm, image_uri=image))

    def problems(self, job: JobRequest) -> Iterator[Problem]:
        """Yield a wrong instance type, a missing image, a file system and a missing network."""
        for instance_type in job.resources.types:
            if pods.gpu_count(instance_type) is None:
                advice = f"use '{pods.INSTANCE_TYPE}' or '{pods.INSTANCE_TYPE}:gpu=N', with N GPUs for each host"
                yield Problem(f"InstanceType is {instance_type!r}", advice, "instance_type")
        if job.algorithm.image_uri is None:
            missing = "AlgorithmSpecification.TrainingImage is missing"
            yield Problem(missing, "give the image of the hosts, which are pods", "image_uri")
        if job.network.isolation:
            what = "EnableNetworkIsolation is True: pods are connected by the cluster's network"
            yield Problem(what, "leave it out, and create a NetworkPolicy", "enable_network_isolation")
        for channel in job.channels:
            if isinstance(channel.source, FileSystemInput):
                what = f"channel {channel.name!r} is a file system, which pods do not mount"
                yield Problem(what, "mount its volume by Kubernetes(patch=...)", "inputs")

    def settings(self, given: HostSettings) -> dict[str, object]:
        """Return the settings of `Kubernetes` and of the variable; those of another job where none are given."""
        if given.recorded and not given.options:
            return settings_from_json(given.recorded).to_json()
        parsed = parse_settings(given.options, os.environ)
        return replace(parsed, namespace=parsed.namespace or find_access(parsed.context).namespace).to_json()

    def plan(self, folder: JobFolder, job: Job, inherited: Mapping[str, str]) -> tuple[dict[str, PlannedHost], str]:
        """Return the environment of each host without the secret, and the job's objects as YAML, without variables.

        A group's first pod stands for all of it.
        """
        import yaml

        groups, names = job.request.resources.host_groups, names_of(folder)
        variables = host_variables(job, inherited)
        made = [
            pods.secret(names, "******", dict.fromkeys(variables, "******")),
            pods.service(names, None),
            *(pods.pod(job, group.hosts[0], names, tuple(variables), {}) for group in groups),
        ]
        others = job.request.resources.count - len(groups)
        script = str(yaml.safe_dump_all(made, sort_keys=False)) + (f"# and {others} more pods\n" if others else "")
        cluster = {"secret": "******", "isolate_requirements": True}
        return plan_container_hosts(job.request, variables, cluster), script

    def create_fleet(
        self, folder: JobFolder, job: Job, tasks: Tasks, inherited: Mapping[str, str], host: str = ""
    ) -> Fleet:
        """Return the pods of a job or, with ``host``, that of the pod that this process runs in."""
        if host:
            from scriptmode_kubernetes._engine.pod_host import PodFleet

            return PodFleet(folder, job, host)
        from scriptmode_kubernetes._engine.fleet import KubernetesFleet

        return KubernetesFleet(folder, job, tasks, inherited)

    def remove_outside_folder(self, folder: JobFolder, inherited: Mapping[str, str]) -> None:  # noqa: ARG002 - pods
        """Delete the job's objects."""
        remove_left_objects(folder)


def remove_left_objects(folder: JobFolder) -> None:
    """Delete the objects of a job that has no agent, unless they are; raise `PlatformError`."""
    if (folder.path / OBJECTS_FILE).exists():
        settings = settings_from_json(folder.read_hosts().settings)
        try:
            remove_objects(open_api(settings), folder)
        except PlatformError as error:
            raise describe_rest(folder, settings, error) from error


def describe_rest(folder: JobFolder, settings: KubernetesSettings, error: PlatformError) -> PlatformError:
    """Return the error for objects that cannot be deleted, with the command that does."""
    name, context = names_of(folder).name, f" --context={settings.context}" if settings.context else ""
    advice = f"delete them: kubectl{context} --namespace={settings.namespace} delete secret {name}"
    what = f"its Secret {name}, and with it its Service and its pods, are still in the cluster: {error.message}"
    return PlatformError(what, advice=advice)


def remove_objects(api: Api, folder: JobFolder, *, waits: bool = False) -> None:
    """Delete the Secret of a job, and with it what it owns, with ``waits`` until no pod is left; raise `ApiError`."""
    names = names_of(folder)
    # Before their owner: the cluster would delete them with their grace, which the kubelet of 1.20 does not shorten.
    try:
        api.delete_all("pods", names.selector, gracePeriodSeconds=1)
    except ApiError as error:
        # An account may delete the owner alone.
        if error.may_pass:
            raise
    api.delete("secrets", names.name, propagationPolicy="Background")
    if waits:
        await_deletion(api, names.selector)
    (folder.path / OBJECTS_FILE).unlink(missing_ok=True)


def await_deletion(api: Api, selector: str) -> None:
    """Wait until no pod is left: one on a lost node would stay until the node is back, and is deleted by force."""
    deadline = time.monotonic() + _DELETION_SECONDS
    while api.list("pods", labelSelector=selector)["items"]:
        if time.monotonic() > deadline:
            api.delete_all("pods", selector, gracePeriodSeconds=0)
            break
        time.sleep(_POLL_SECONDS)
