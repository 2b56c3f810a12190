"""`Kubernetes`: the local platform with the settings of a cluster, whose pods are the hosts."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from scriptmode.errors import invalid
from scriptmode.platforms.local import LocalPlatform
from scriptmode_kubernetes._engine.pods import INSTANCE_TYPE
from scriptmode_kubernetes._engine.settings import parse_settings
from scriptmode_runtime.contract import DEFAULT_STOP_GRACE

if TYPE_CHECKING:
    from scriptmode.engines import TrainingJobSpec


class Kubernetes(LocalPlatform):
    """A Kubernetes cluster, whose API this process reaches, and whose pods reach this machine.

    Each host of a job with the instance type ``kubernetes``, or ``kubernetes:gpu=N`` for N GPUs, is a pod. The jobs are
    in a data directory like those of `LocalPlatform`. Settings that are not given are those of the variable
    SCRIPTMODE_KUBERNETES, a JSON object.

    Args:
        data_dir: Directory of the jobs. Default: the variable SCRIPTMODE_DATA_DIR, else the user's data directory.
        stop_grace: Seconds from SIGTERM to SIGKILL when a job is stopped or evicted.
        settings: ``namespace`` and ``context`` of the kubeconfig (by default those of this pod, or the current
            ones); ``image`` of the hosts of jobs that name none; ``agent_image``, which has this version of
            scriptmode, where that one has not, and ``agent_python``, its interpreter; ``address`` of this machine for
            the pods; ``node_selector``, ``tolerations`` and ``resources`` (requests and limits of the container that
            trains) as the API has them; ``group_resources``, which are merged over these, by names of instance groups;
            ``queue``, a local queue of Kueue; ``schedule_timeout``, the seconds (by default 300, 0 for no limit) after
            which pods that have nodes are deleted if others of the job have none, and all are created again later;
            ``restricted``, whether the pods keep to the Pod Security Standard "restricted"; ``patch``, a JSON merge
            patch (RFC 7396) of each pod, in which a list of members with names changes these.

    Raises:
        SpecError: A setting is wrong.

    """

    def __init__(
        self,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        stop_grace: float = DEFAULT_STOP_GRACE,
        **settings: object,
    ) -> None:
        super().__init__(data_dir=data_dir, stop_grace=stop_grace)
        # Now, so that a wrong setting is reported where it stands.
        parse_settings(settings, os.environ)
        self._settings = replace(self._settings, options=settings)

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments with which another process creates this platform, as JSON has them."""
        own = {name: value for name, value in super().arguments.items() if name in ("data_dir", "stop_grace")}
        return {**own, "platform": f"{__name__}:Kubernetes", "options": dict(self._settings.options)}

    def complete(self, spec: TrainingJobSpec) -> TrainingJobSpec:
        """Fill in what `LocalPlatform.complete` does; raise `SpecError` for hosts of another kind."""
        wrong = [name for name in spec.resources.types if name.partition(":")[0] != INSTANCE_TYPE]
        if wrong:
            advice = f"use {INSTANCE_TYPE!r} or '{INSTANCE_TYPE}:gpu=N', or leave platform out"
            raise invalid("instance_type", f"{wrong[0]!r} is no pod of a Kubernetes cluster", advice)
        return super().complete(spec)
