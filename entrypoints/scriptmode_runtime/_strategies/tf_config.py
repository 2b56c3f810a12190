"""TensorFlow's cluster specification ``TF_CONFIG``, and the tasks of this host. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from scriptmode_runtime import contract
from scriptmode_runtime._values.errors import ConfigurationError
from scriptmode_runtime.plan import TRAINERS_ENDED, Command, ProcessSpec, Wait

if TYPE_CHECKING:
    from scriptmode_runtime._environment import TrainingEnvironment
    from scriptmode_runtime._values.cluster import Host

EVALUATOR = "evaluator"
#: The GPU is for another task: a parameter server holds variables in memory, an evaluator runs beside a trainer.
NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}


class Task(NamedTuple):
    """One process of TensorFlow's cluster, and its value of ``TF_CONFIG``."""

    role: str
    config: str

    def trainer(self, command: Command, env: Mapping[str, str]) -> ProcessSpec:
        """Return the process that runs the script as this task."""
        variables = {**command.env, **command.task_env, "TF_CONFIG": self.config, **env}
        return ProcessSpec(self.role, command.argv, variables, command.cwd)


def tasks(
    environment: TrainingEnvironment, layout: Mapping[str, Sequence[Host]], ports: Mapping[str, str]
) -> list[Task]:
    """Return this host's tasks: the one in its inherited ``TF_CONFIG``, else those of ``layout``, in its order.

    ``layout`` has the hosts of each role, ``ports`` the name of a role's port where it differs from the role.
    """
    if environment.inherited.get("TF_CONFIG", "").strip():
        return [_inherited_task(environment, layout)]
    return [
        Task(role, _config(layout, ports, role, index))
        for role, hosts in layout.items()
        for index, host in enumerate(hosts)
        if host.name == environment.host
    ]


def with_evaluator(
    environment: TrainingEnvironment, layout: Mapping[str, Sequence[Host]], switch: str
) -> Mapping[str, Sequence[Host]]:
    """Return the job's own roles, else ``layout``, with an evaluator on the last host if ``switch`` is on."""
    if contract.enabled(environment.framework_parameters.get(switch)):
        layout = {**layout, EVALUATOR: environment.cluster.hosts[-1:]}
    return environment.cluster.roles or layout


def final_waits(environment: TrainingEnvironment) -> tuple[Wait, ...]:
    """Return the waits after a host's own trainers: for the trainers of every other host."""
    return (Wait(TRAINERS_ENDED),) if len(environment.cluster.hosts) > 1 else ()


def _config(layout: Mapping[str, Sequence[Host]], ports: Mapping[str, str], role: str, index: int) -> str:
    """Return the value of ``TF_CONFIG`` for task ``index`` of ``role``.

    The evaluator is not part of the training cluster (tf.estimator.RunConfig), and other tasks do not know it; but a
    strategy created in the evaluator looks itself up there. ``tf.estimator`` requires ``environment: cloud`` to
    run a cluster with a master.
    """
    cluster = {
        name: [host.endpoint(ports.get(name, name)) for host in hosts]
        for name, hosts in layout.items()
        if hosts and (name != EVALUATOR or role == EVALUATOR)
    }
    document = {"cluster": cluster, "environment": "cloud", "task": {"index": index, "type": role}}
    return json.dumps(document, sort_keys=True)


def _inherited_task(environment: TrainingEnvironment, layout: Mapping[str, Sequence[Host]]) -> Task:
    """Return the task that the program which started this host has set, as Kubernetes' TFJob and Vertex AI do."""
    text = environment.inherited["TF_CONFIG"]
    if EVALUATOR in layout or environment.cluster.roles:
        raise ConfigurationError(
            f"TF_CONFIG is set, and {environment.strategy} names roles or an evaluator of its own; set one of them"
        )
    try:
        document = json.loads(text)
        role, index = document["task"]["type"], document["task"]["index"]
        if role != EVALUATOR:
            document["cluster"][role][index]
    except (ValueError, LookupError, TypeError) as error:
        raise ConfigurationError(
            f"TF_CONFIG is set to {text!r}, which names no task of its cluster; correct it or leave it out"
        ) from error
    return Task(role, text)
