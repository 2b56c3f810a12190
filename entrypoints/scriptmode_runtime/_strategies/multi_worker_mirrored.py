"""TensorFlow's MultiWorkerMirroredStrategy: one worker on each host, all equal; worker 0 is the chief."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode_runtime import contract
from scriptmode_runtime._strategies.tf_config import NO_GPU, final_waits, tasks, with_evaluator
from scriptmode_runtime.plan import Command, LaunchPlan

if TYPE_CHECKING:
    from scriptmode_runtime._environment import TrainingEnvironment

_PORTS = {"chief": "mirrored", "worker": "mirrored"}


def plan(environment: TrainingEnvironment, command: Command) -> LaunchPlan:
    """Return the plan: the script as each of this host's tasks, also in a cluster of one host."""
    workers = {"worker": environment.cluster.hosts}
    layout = with_evaluator(environment, workers, contract.MULTI_WORKER_MIRRORED_EVALUATOR)
    main, *side_processes = tasks(environment, layout, _PORTS)
    return LaunchPlan(
        main.trainer(command, {}),
        after=final_waits(environment),
        side_processes=tuple(task.trainer(command, NO_GPU) for task in side_processes),
    )
