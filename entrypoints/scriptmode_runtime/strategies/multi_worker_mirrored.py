"""TensorFlow's MultiWorkerMirroredStrategy: one worker on each host, all equal; worker 0 is the chief."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode_runtime.cluster import endpoints
from scriptmode_runtime.plan import TRAINERS_ENDED, LaunchPlan, ProcessSpec, Wait
from scriptmode_runtime.strategies.tf_config import tf_config

if TYPE_CHECKING:
    from scriptmode_runtime.environment import TrainingEnvironment
    from scriptmode_runtime.plan import Command


def plan(environment: TrainingEnvironment, command: Command) -> LaunchPlan:
    """Run the script as this host's worker; a cluster of one is a cluster."""
    cluster = environment.cluster
    config = tf_config({"worker": endpoints(cluster.hosts, "mirrored")}, "worker", cluster.position)
    main = ProcessSpec("worker", command.argv, {**command.env, "TF_CONFIG": config}, command.cwd)
    return LaunchPlan(main=main, after=(Wait(TRAINERS_ENDED),) if len(cluster.hosts) > 1 else ())
