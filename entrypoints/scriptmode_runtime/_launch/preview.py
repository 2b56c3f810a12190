"""The plan of a host that does not run yet: what `train` would start there, from what a platform would give it.

`scriptmode.Estimator.plan` and the roles of hosts are made of it, in the process that asks.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from scriptmode_runtime import _environment as environment, contract
from scriptmode_runtime._host import machine
from scriptmode_runtime._host.machine import Machine
from scriptmode_runtime._host.programs import Mpirun
from scriptmode_runtime._launch import aws_programs, user_code
from scriptmode_runtime._report.redaction import Redaction
from scriptmode_runtime._strategies import plan_for
from scriptmode_runtime.plan import Command, LaunchPlan, ProcessSpec

if TYPE_CHECKING:
    from scriptmode_runtime._environment import TrainingEnvironment

_NO_FILES: environment.Files = {
    contract.HYPERPARAMETERS_FILE: {},
    contract.INPUT_DATA_CONFIG_FILE: {},
    contract.CLUSTER_FILE: {},
}


def host_environment(
    base_dir: str, files: environment.Files, environ: Mapping[str, str], *, gpus: int | None = None, python: str = ""
) -> TrainingEnvironment:
    """Return the environment of a host that the platform gives these variables, and files by the names of `contract`.

    ``python`` is the interpreter of a host with this machine's programs, "" for the host of an image; ``gpus`` the
    number of the host's GPUs, where that differs from this machine's. Raises `RuntimeFailure` for what `train` would
    refuse.
    """
    here = environment.from_files(base_dir, {**_NO_FILES, **files}, environ)
    if python:
        here = environment.with_machine(here._replace(python=python), environ)
        return here._replace(machine=here.machine._replace(gpus=here.machine.gpus if gpus is None else gpus))
    devices = machine.inspect(environ=environ) if gpus is None else Machine(1, gpus, 0)
    return here._replace(python="python", mpirun=Mpirun("mpirun", 5), machine=devices, node=here.host)


def preview(here: TrainingEnvironment) -> tuple[str, tuple[str, ...], LaunchPlan]:
    """Return a host's roles, the user's command line and the plan; raise `RuntimeFailure` as `train` would."""
    user_code.check(here)
    command = user_code.command(here)
    plan = aws_programs.with_upload(here, plan_for(here, command))
    return describe_roles(here, plan), command.argv, plan


def roles(here: TrainingEnvironment) -> str:
    """Return the roles of a host as text, without a look at its source."""
    return describe_roles(here, plan_for(here, Command((), {}, here.base_dir, here.python)))


def describe_roles(here: TrainingEnvironment, plan: LaunchPlan) -> str:
    """Return the roles of a host in its job as text: ``chief, worker, ps``, ``mpirun, ranks 0-3``, ``worker 1``."""
    if here.strategy == contract.MPI:
        from scriptmode_runtime._strategies import mpi

        lead = [plan.main.name] if plan.main else []
        return ", ".join([*lead, _ranks(mpi.ranks(here))])
    return ", ".join(_role(process, here.strategy) for process in (*plan.trainers, *plan.services))


def _ranks(ranks: range | None) -> str:
    if ranks is None:
        return "ranks as the job's options place them"
    if len(ranks) <= 1:
        return f"rank {ranks[0]}" if ranks else "no rank"
    return f"ranks {ranks[0]}-{ranks[-1]}"


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
    sources: list[Mapping[str, Any]] = [dict(os.environ), *named]
    secrets = set()
    for here in environments:
        sources += [mapping for mapping in (here.hyperparameters, here.framework_parameters) if mapping not in sources]
        secrets |= {here.cluster.secret, here.settings.secret}
    for environ in variables:
        # Each host has its own root directory.
        own = {name: value for name, value in environ.items() if name != contract.BASE_DIR_VARIABLE}
        sources += [own] if own not in sources else []
    return Redaction(*sources, values=secrets)
