"""Each host runs the script on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode_runtime.plan import LaunchPlan, ProcessSpec

if TYPE_CHECKING:
    from scriptmode_runtime.environment import TrainingEnvironment
    from scriptmode_runtime.plan import Command


def plan(environment: TrainingEnvironment, command: Command) -> LaunchPlan:  # noqa: ARG001 - every strategy's signature
    """Return the plan: the script alone, without waits for other hosts."""
    return LaunchPlan(main=ProcessSpec("script", command.argv, command.env, command.cwd))
