"""Hosts that are containers of this machine's Docker."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode._core.aws import image_support, images
from scriptmode._core.spec.hosts import LOCAL_GPU
from scriptmode._core.spec.versions import version_numbers
from scriptmode._core.text.messages import Problem
from scriptmode.errors import ContainerError, invalid
from scriptmode_local._hosts import HostSettings, container_fleet, job_containers
from scriptmode_local._hosts.container_limits import parse_limits
from scriptmode_local._hosts.engine import Engine
from scriptmode_local._hosts.interpreter import warn_of_others
from scriptmode_local._opt_ml import opt_ml, planned_containers
from scriptmode_runtime.contract import DEFAULT_BASE_DIR, MODEL_DIR_PARAMETER

if TYPE_CHECKING:
    from scriptmode._core.spec.host_values import PlannedHost
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.spec.training_job import TrainingJobSpec
    from scriptmode_local._hosts.fleet import Fleet
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobFolder
    from scriptmode_local._system.forked_tasks import Tasks

#: The dead agent's guard removes the job's containers too, twice within little more than a second: also the network,
#: which is in use until a container is removed, and the container that changes the owner of files.
_GUARD_SECONDS = 3.0


class ContainerEngine(Engine):
    """Engine of ``local`` and ``local_gpu``."""

    def complete(self, spec: TrainingJobSpec, settings: HostSettings) -> TrainingJobSpec:
        """Fill in the image: the spec's, else the one that this project builds, with a warning of other versions."""
        self.settings(settings)
        spec = replace(spec, algorithm=replace(spec.algorithm, image_uri=_image_of(spec, settings.region)))
        image_support.check_aws_image(spec)
        return spec

    def problems(self, job: JobRequest) -> Iterator[Problem]:
        """Yield a missing image, and a ``model_dir`` that the containers do not have."""
        if job.algorithm.image_uri is None:
            missing = "AlgorithmSpecification.TrainingImage is missing"
            yield Problem(missing, "give the image of the hosts, which are containers", "image_uri")
        model_dir = container_fleet.model_dir_here(job)
        root = Path(DEFAULT_BASE_DIR)
        if model_dir and (model_dir == root or root in model_dir.parents or model_dir in root.parents):
            what = f"HyperParameters[{MODEL_DIR_PARAMETER!r}] is {job.model_dir!r}; a container has its own {root}"
            yield Problem(what, f"use {root}/model", "model_dir")

    def settings(self, given: HostSettings) -> dict[str, object]:
        """Return the limits of each container: those of the settings, then those of the variable."""
        return asdict(parse_limits(given.container_limits, os.environ))

    def plan(
        self,
        folder: JobFolder,  # noqa: ARG002 - a container has /opt/ml
        job: Job,
        inherited: Mapping[str, str],
    ) -> tuple[dict[str, PlannedHost], str]:
        """Return the environment of each host, without the secret."""
        request, _ = opt_ml.with_visible_source(job.request)
        variables = container_fleet.container_environment(job, inherited)
        cluster = {"secret": planned_containers.HIDDEN, "isolate_requirements": True}
        return planned_containers.plan_container_hosts(request, variables, cluster), ""

    def create_fleet(
        self, folder: JobFolder, job: Job, tasks: Tasks, inherited: Mapping[str, str], host: str = ""
    ) -> Fleet:
        """Return the containers of a job, all of which one agent runs, for they need its guard and its umask."""
        if host:
            what = f"{host} of {folder.name} has no agent of its own"
            raise ContainerError(what, advice="start it with the other hosts")
        return container_fleet.ContainerFleet(folder, job, tasks, inherited)

    def remove_outside_folder(
        self,
        folder: JobFolder,
        inherited: Mapping[str, str],  # noqa: ARG002 - containers have directories of their own
    ) -> None:
        """Remove containers and network, and make the owner of the job's folder own what containers wrote."""
        job_containers.remove_job_containers(
            folder.label,
            lambda: container_fleet.restore_ownership(folder, folder.read_job()),
            retry_seconds=_GUARD_SECONDS,
        )


def _image_of(spec: TrainingJobSpec, region: str) -> str:
    """Return the image of hosts that are containers: the spec's, else the one of this project that is nearest."""
    algorithm = spec.algorithm
    if algorithm.image_uri is not None:
        return algorithm.image_uri
    if spec.script is None:
        raise invalid(
            "image_uri", "and entry_point are missing", "give an image, or a script to run in this project's image"
        )
    if LOCAL_GPU in spec.resources.types:
        if algorithm.framework_version:
            return images.look_up_image(
                framework_version=algorithm.framework_version,
                py_version=algorithm.py_version,
                region=region,
                instance_types=(LOCAL_GPU,),
            )
        raise invalid(
            "image_uri",
            "is missing",
            f"{LOCAL_GPU!r} needs an image for GPUs; give framework_version= for AWS's own, or image_uri=..., or build "
            "one from an image with CUDA: scriptmode image build --gpu --base ...",
        )
    from scriptmode.containers._image_recipe import PYTHON_VERSION, TENSORFLOW_VERSIONS
    from scriptmode.containers._training_images import default_image

    tensorflow = _nearest(algorithm.framework_version, TENSORFLOW_VERSIONS)
    image = default_image(tensorflow)
    hosts, advice = f"the hosts run this project's image {image}", "For another image (AWS's too) give image_uri=..."
    warn_of_others(algorithm, hosts, (tensorflow,), PYTHON_VERSION, advice)
    return image


def _nearest(wanted: str | None, versions: Sequence[str]) -> str:
    """Return the version whose minor version is nearest to the wanted one; of two, and of all, the newest."""

    def position(version: str) -> int:
        major, minor, *_ = (*version_numbers(version), 0)
        return 1000 * major + minor

    newest_first = sorted(versions, key=position, reverse=True)
    return min(newest_first, key=lambda version: abs(position(version) - position(wanted or newest_first[0])))
