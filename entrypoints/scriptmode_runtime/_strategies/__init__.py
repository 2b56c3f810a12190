"""Distribution strategies: one module each, with ``plan(environment, command) -> LaunchPlan``. Pure.

A new strategy is a module here, its name and its switch in `contract`, and a line in `plan_for`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode_runtime import contract

if TYPE_CHECKING:
    from scriptmode_runtime._environment import TrainingEnvironment
    from scriptmode_runtime.plan import Command, LaunchPlan


def plan_for(environment: TrainingEnvironment, command: Command) -> LaunchPlan:
    """Return the plan of one host, as its job's strategy makes it."""
    if environment.strategy == contract.SINGLE:
        return command.plan()
    from scriptmode_runtime._strategies import mpi, multi_worker_mirrored, parameter_server

    strategies = {
        contract.PARAMETER_SERVER: parameter_server.plan,
        contract.MULTI_WORKER_MIRRORED: multi_worker_mirrored.plan,
        contract.MPI: mpi.plan,
    }
    return strategies[environment.strategy](environment, command)
