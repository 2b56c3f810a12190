"""The plan of a host that does not run yet: what `train` would start there, from what a platform would give it.

`scriptmode.Estimator.plan` and the roles of hosts are made of it, in the process that asks.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode_runtime import contract, environment, user_code
from scriptmode_runtime.host import machine
from scriptmode_runtime.host.machine import Machine
from scriptmode_runtime.plan import Command, LaunchPlan, ProcessSpec
from scriptmode_runtime.report.redaction import Redaction
from scriptmode_runtime.strategies import plan_for
from scriptmode_runtime.variables import script_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scriptmode_runtime.environment import TrainingEnvironment
    from scriptmode_runtime.host.programs import Mpirun, Ssh

_NO_FILES: dict[str, dict[str, Any]] = {
    contract.HYPERPARAMETERS_FILE: {},
    contract.INPUT_DATA_CONFIG_FILE: {},
    contract.CLUSTER_FILE: {},
}
#: Files of these rights are for programs to read, not to run.
_TO_READ = 0o600


class Programs(NamedTuple):
    """The programs of a host that is not this machine; ``None`` for one that it lacks."""

    python: str
    mpirun: Mpirun | None = None
    ssh: Ssh | None = None


class Preview(NamedTuple):
    """What one host would run."""

    #: Its roles in the job: ``chief, worker, ps``, ``mpirun, ranks 0-3``, ``worker 1``.
    roles: str
    #: Variables that every process of a host has are left out: they are in its files.
    plan: LaunchPlan
    #: The command line of the user's program.
    program: tuple[str, ...]
    #: Processes that run before all others, one after the other.
    preparation: tuple[ProcessSpec, ...]
    #: The files that programs read, by their paths; ``plan`` has none.
    files: Mapping[str, str]
    #: The ``SM_*`` variables of the program.
    variables: Mapping[str, str]


def host_environment(
    base_dir: str,
    files: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    gpus: int | None = None,
    assumed: Programs | None = None,
    python: str = "",
) -> TrainingEnvironment:
    """Return the environment of a host that the platform gives these files and variables.

    Args:
        base_dir: Directory of the platform's files on the host.
        files: Content of these files, by the names of `contract`.
        environ: The host's variables.
        gpus: The number of its GPUs, where that differs from this machine's.
        assumed: Its programs; by default it has those of this machine.
        python: Its interpreter, by default this one.

    Raises `RuntimeFailure` for what `train` would refuse.
    """
    here = environment.from_files(base_dir, {**_NO_FILES, **files}, environ)
    here = here._replace(python=python or here.python)
    if assumed is None:
        here = environment.with_machine(here, environ)
        return here._replace(machine=here.machine._replace(gpus=here.machine.gpus if gpus is None else gpus))
    devices = machine.inspect(environ=environ) if gpus is None else Machine(1, gpus, 0)
    return here._replace(**assumed._asdict(), machine=devices, node=here.host)


def preview(here: TrainingEnvironment) -> Preview:
    """Return what a host would run; raise `RuntimeFailure` for what `train` would refuse."""
    user_code.check(here)
    command = user_code.command(here)
    plan = plan_for(here, command)

    def own(process: ProcessSpec) -> ProcessSpec:
        env = {name: text for name, text in process.env.items() if command.env.get(name) != text}
        return process._replace(env=env)

    return Preview(
        describe_roles(here, plan),
        plan._replace(
            main=own(plan.main) if plan.main else None,
            side_processes=tuple(map(own, plan.side_processes)),
            services=tuple(map(own, plan.services)),
            files=(),
        ),
        tuple(command.argv),
        tuple(ProcessSpec(each.name, tuple(each.argv), {}, each.cwd) for each in user_code.preparations(here)),
        {file.path: file.content for file in plan.files if file.mode == _TO_READ},
        # Without the one that has all others as an object.
        {
            name: text
            for name, text in sorted(script_variables(here).items())
            if name.startswith("SM_") and name != "SM_TRAINING_ENV"
        },
    )


def roles(here: TrainingEnvironment) -> str:
    """Return the roles of a host as text, without a look at its source."""
    return describe_roles(here, plan_for(here, Command((), {}, here.base_dir, here.python)))


def describe_roles(here: TrainingEnvironment, plan: LaunchPlan) -> str:
    """Return the roles of a host in its job as text: ``chief, worker, ps``, ``mpirun, ranks 0-3``, ``worker 1``."""
    if here.strategy == contract.MPI:
        from scriptmode_runtime.strategies import mpi

        lead = [plan.main.name] if plan.main else []
        return ", ".join([*lead, _ranks(mpi.ranks(here))])
    return ", ".join(_role(process, here.strategy) for process in (*plan.trainers, *plan.services))


def _ranks(found: range | None) -> str:
    if found is None:
        return "ranks as the job's options place them"
    if len(found) <= 1:
        return f"rank {found[0]}" if found else "no rank"
    return f"ranks {found[0]}-{found[-1]}"


def _role(process: ProcessSpec, strategy: str) -> str:
    if strategy != contract.MULTI_WORKER_MIRRORED or process.name != "worker":
        return process.name
    # All of them are workers: their numbers distinguish them.
    return f"{process.name} {json.loads(process.env['TF_CONFIG'])['task']['index']}"


def redaction_of(
    environments: Iterable[TrainingEnvironment],
    variables: Iterable[Mapping[str, str]],
    named: Iterable[Mapping[str, Any]],
) -> Redaction:
    """Return a function that hides the secrets of hosts, those among their variables, and those of ``named``."""
    found: list[Mapping[str, Any]] = [dict(os.environ), *named]
    secrets = set()
    for here in environments:
        found += [each for each in (here.hyperparameters, here.framework_parameters) if each not in found]
        secrets |= {here.cluster.secret, here.settings.secret}
    for environ in variables:
        # Each host has its own root directory.
        own = {name: value for name, value in environ.items() if name != contract.BASE_DIR_VARIABLE}
        found += [own] if own not in found else []
    return Redaction(*found, values=secrets)
