"""TensorFlow's MultiWorkerMirroredStrategy: one worker on each host, all equal; worker 0 is the chief."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode_runtime import contract
from scriptmode_runtime.plan import LaunchPlan
from scriptmode_runtime.strategies.tf_config import EVALUATOR, NO_GPU, final_waits, tasks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scriptmode_runtime.cluster import Host
    from scriptmode_runtime.environment import TrainingEnvironment
    from scriptmode_runtime.plan import Command

_PORTS = {"chief": "mirrored", "worker": "mirrored"}


def plan(environment: TrainingEnvironment, command: Command) -> LaunchPlan:
    """Return the plan: the script as each of this host's tasks, also in a cluster of one host."""
    main, *side_processes = tasks(environment, _layout(environment), _PORTS)
    return LaunchPlan(
        main.trainer(command, {}),
        after=final_waits(environment),
        side_processes=tuple(task.trainer(command, NO_GPU) for task in side_processes),
    )


def _layout(environment: TrainingEnvironment) -> Mapping[str, Sequence[Host]]:
    hosts = environment.cluster.hosts
    if environment.cluster.roles:
        return environment.cluster.roles
    evaluated = contract.enabled(environment.framework_parameters.get(contract.MULTI_WORKER_MIRRORED_EVALUATOR))
    return {"worker": hosts, EVALUATOR: hosts[-1:]} if evaluated else {"worker": hosts}
