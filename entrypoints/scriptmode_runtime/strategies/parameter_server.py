"""Parameter servers: TF1's between-graph layout, and the layout of TF2's ParameterServerStrategy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode_runtime import contract
from scriptmode_runtime.cluster import endpoints
from scriptmode_runtime.environment import enabled
from scriptmode_runtime.plan import TRAINERS_ENDED, LaunchPlan, ProcessSpec, Wait
from scriptmode_runtime.strategies import single
from scriptmode_runtime.strategies.tf_config import tf_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode_runtime.environment import TrainingEnvironment
    from scriptmode_runtime.plan import Command

#: TensorFlow's guide to parameter server training: without it a lost task hangs the coordinator.
_FAIL_FAST = {"GRPC_FAIL_FAST": "use_caller"}
#: A parameter server holds variables in memory; the GPU is the worker's.
_NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1"}
#: A chief and a worker of one host share its GPUs: neither may take all of their memory.
_SHARED_GPU = {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}


def plan(environment: TrainingEnvironment, command: Command) -> LaunchPlan:
    """Give this host's part in the layout the job asks for."""
    if enabled(environment.framework_parameters.get(contract.PARAMETER_SERVER_COORDINATOR)):
        return _coordinator(environment, command)
    return _between_graph(environment, command)


def _between_graph(environment: TrainingEnvironment, command: Command) -> LaunchPlan:
    """Let every host train, the first as master, the others as workers, and have a ps. One host needs none."""
    hosts = environment.cluster.hosts
    if len(hosts) == 1:
        return single.plan(environment, command)
    cluster = {
        "master": endpoints(hosts[:1], "worker"),
        "ps": endpoints(hosts, "ps"),
        "worker": endpoints(hosts[1:], "worker"),
    }
    index = environment.cluster.position
    role, role_index = ("worker", index - 1) if index else ("master", 0)
    env = {**command.env, "TF_CONFIG": tf_config(cluster, role, role_index)}
    server = _server(environment, command, "ps", {"TF_CONFIG": tf_config(cluster, "ps", index), **_NO_GPU})
    main = ProcessSpec(role, command.argv, env, command.cwd)
    return LaunchPlan(main=main, services=(server,), after=(Wait(TRAINERS_ENDED),))


def _coordinator(environment: TrainingEnvironment, command: Command) -> LaunchPlan:
    """Let the first host's chief run the script, and every host a worker and a ps server; a lone host too."""
    hosts, index = environment.cluster.hosts, environment.cluster.position
    cluster = {
        "chief": endpoints(hosts[:1], "chief"),
        "worker": endpoints(hosts, "worker"),
        "ps": endpoints(hosts, "ps"),
    }
    shared = {**_FAIL_FAST, **(_SHARED_GPU if environment.machine.gpus and not index else {})}
    worker = _server(environment, command, "worker", {"TF_CONFIG": tf_config(cluster, "worker", index), **shared})
    ps_env = {"TF_CONFIG": tf_config(cluster, "ps", index), **_FAIL_FAST, **_NO_GPU}
    services = (worker, _server(environment, command, "ps", ps_env))
    after = (Wait(TRAINERS_ENDED),) if len(hosts) > 1 else ()
    if index:
        return LaunchPlan(main=None, services=services, after=after)
    env = {**command.env, "TF_CONFIG": tf_config(cluster, "chief", 0), **shared}
    return LaunchPlan(main=ProcessSpec("chief", command.argv, env, command.cwd), services=services, after=after)


def _server(environment: TrainingEnvironment, command: Command, role: str, env: Mapping[str, str]) -> ProcessSpec:
    argv = (command.python, "-m", "scriptmode_runtime.tensorflow.server")
    env = {"CURRENT_HOST": environment.host, "PYTHONUNBUFFERED": "1", **env}
    # Not in the code folder: `-m` would let the user's modules stand in for ours.
    return ProcessSpec(role, argv, env, environment.path(contract.OUTPUT_DIR))
