"""Parameter servers: TF1's between-graph layout, and the layout of TF2's ParameterServerStrategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from scriptmode_runtime import contract
from scriptmode_runtime._strategies.tf_config import EVALUATOR, NO_GPU, Task, final_waits, tasks, with_evaluator
from scriptmode_runtime._values.errors import ConfigurationError
from scriptmode_runtime.plan import Command, LaunchPlan, ProcessSpec

if TYPE_CHECKING:
    from scriptmode_runtime._environment import TrainingEnvironment
    from scriptmode_runtime._values.cluster import Host

#: TensorFlow's guide to parameter server training: without it a lost task hangs the coordinator.
_FAIL_FAST = {"GRPC_FAIL_FAST": "use_caller"}
#: A chief and a worker of one host share its GPUs: neither may take all of their memory.
_SHARED_GPU = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}


def plan(environment: TrainingEnvironment, command: Command) -> LaunchPlan:
    """Return the plan: the script as this host's trainers, and a server as each of its other tasks."""
    coordinated = contract.enabled(environment.framework_parameters.get(contract.PARAMETER_SERVER_COORDINATOR))
    layout = _coordinator(environment) if coordinated else _between_graph(environment)
    # A coordinator's chief runs beside a worker; between-graph it replaces one.
    own = tasks(environment, layout, {} if coordinated else {"master": "worker", "chief": "worker"})
    if not own:
        return command.plan()
    served = ("worker", "ps") if coordinated else ("ps",)
    services, trainers = [], []
    for task in own:
        env = _variables(environment, own, task, coordinated=coordinated)
        if task.role in served:
            services.append(_server(environment, command, task, env))
        else:
            trainers.append(task.trainer(command, env))
    if not trainers and len(environment.cluster.hosts) == 1:
        # A task of a cluster that only its own TF_CONFIG describes: the program that set TF_CONFIG ends it.
        trainers, services = services, []
    main = trainers[0] if trainers else None
    return LaunchPlan(main, tuple(services), after=final_waits(environment), side_processes=tuple(trainers[1:]))


def _between_graph(environment: TrainingEnvironment) -> Mapping[str, Sequence[Host]]:
    """Return the layout in which every host trains, the first as master, and has a ps; a single host has no cluster.

    The name is ``master`` with every TensorFlow, as in AWS's TensorFlow adapter: scripts check for that name.
    """
    (hosts, servers), parameters = _trainers_and_servers(environment), environment.framework_parameters
    evaluated = contract.enabled(parameters.get(contract.PARAMETER_SERVER_EVALUATOR))
    # tf.estimator: a master evaluates itself and excludes an evaluator; a chief leaves evaluation to an evaluator.
    is_chief = evaluated or contract.enabled(parameters.get(contract.PARAMETER_SERVER_CHIEF))
    layout = {"chief" if is_chief else "master": hosts[:1], "worker": hosts[1:], "ps": servers}
    if len(environment.cluster.hosts) == 1:
        layout = {"chief": hosts} if evaluated else {}
    return with_evaluator(environment, layout, contract.PARAMETER_SERVER_EVALUATOR)


def _coordinator(environment: TrainingEnvironment) -> Mapping[str, Sequence[Host]]:
    """Return the layout with a chief on the first host, and a worker and a ps on every host, also on a single one."""
    hosts, servers = _trainers_and_servers(environment)
    layout = {"chief": hosts[:1], "worker": hosts, "ps": servers}
    return with_evaluator(environment, layout, contract.PARAMETER_SERVER_EVALUATOR)


def _trainers_and_servers(environment: TrainingEnvironment) -> tuple[Sequence[Host], Sequence[Host]]:
    """Return the hosts that train and those with a ps: all of them both, or the last ones servers alone."""
    hosts, count = environment.cluster.hosts, environment.framework_parameters.get(contract.PARAMETER_SERVER_HOSTS)
    if count is None:
        return hosts, hosts
    if type(count) is not int or not 0 < count < len(hosts):
        what = f"{contract.PARAMETER_SERVER_HOSTS} is {count!r} of {len(hosts)} hosts"
        raise ConfigurationError(f"{what}; at least one host is a parameter server, and one trains")
    return hosts[:-count], hosts[-count:]


def _variables(
    environment: TrainingEnvironment, own: Sequence[Task], task: Task, *, coordinated: bool
) -> dict[str, str]:
    """Return a task's variables in addition to ``TF_CONFIG``."""
    env = dict(_FAIL_FAST) if coordinated else {}
    if task.role == "ps" or (task.role == EVALUATOR and len(own) > 1):
        env.update(NO_GPU)
    elif {"chief", "worker"} <= {host_task.role for host_task in own} and environment.machine.gpus:
        env.update(_SHARED_GPU)
    return env


def _server(
    environment: TrainingEnvironment, command: Command, task: Task, variables: Mapping[str, str]
) -> ProcessSpec:
    argv = (command.python, "-m", "scriptmode_runtime.tensorflow.server")
    env = {"CURRENT_HOST": environment.host, "PYTHONUNBUFFERED": "1", "TF_CONFIG": task.config, **variables}
    # Not in the code directory: with `-m` the user's modules would hide the runtime's.
    return ProcessSpec(task.role, argv, env, environment.path(contract.OUTPUT_DIR))
