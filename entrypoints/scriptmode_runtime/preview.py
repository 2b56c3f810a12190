"""``python -m scriptmode_runtime.preview``: the plans of all hosts of a job; nothing is run.

Standard input is a JSON object, standard output another. The input has

* ``hosts``: for each host by its name ``base_dir``, ``environ`` (its variables), ``files`` (the platform's, by the
  names of `contract`) and ``gpus``, where their number differs from this machine's;
* ``files``: those that are the same on every host;
* ``machine``: the programs of the hosts' machines: ``python``, ``mpirun`` (its path and the major version of its Open
  MPI), ``ssh`` (paths of client, server and key generator), each null where it is missing. Without ``machine`` the
  hosts are processes of this machine, with this interpreter;
* ``source``: texts of the source's files by their names, at least of those that determine the command;
* ``only_roles``: whether to return the roles only;
* ``variables``: names of the hosts whose ``SM_*`` variables are returned;
* ``shown``: any document to display; it is returned without secrets, also without those of the objects in the list
  ``named``.

The output has ``hosts``, each with its ``roles``, ``strategy``, processes and the ``program``'s command line, and
``shown``; or ``refused``, the host and the error of its part.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from scriptmode_runtime import contract, environment, user_code
from scriptmode_runtime.errors import RuntimeFailure
from scriptmode_runtime.host import machine
from scriptmode_runtime.host.machine import Machine
from scriptmode_runtime.host.programs import Mpirun, Ssh
from scriptmode_runtime.plan import Command, LaunchPlan, as_document
from scriptmode_runtime.report.redaction import Redaction
from scriptmode_runtime.strategies import plan_for
from scriptmode_runtime.variables import script_variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode_runtime.environment import TrainingEnvironment
    from scriptmode_runtime.plan import ProcessSpec

_NO_FILES: dict[str, dict[str, Any]] = {
    contract.HYPERPARAMETERS_FILE: {},
    contract.INPUT_DATA_CONFIG_FILE: {},
    contract.CLUSTER_FILE: {},
}
#: Files of these rights are for programs to read, not to run.
_TO_READ = 0o600


def main() -> int:
    """Read the input, and write the output; a job that is refused is an output too."""
    sys.stdout.write(json.dumps(preview(json.load(sys.stdin))))
    return 0


def preview(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the output for an input, both in the form of the module's docstring."""
    environments: dict[str, TrainingEnvironment] = {}
    hosts: dict[str, Any] = {}
    name = ""
    try:
        for name, host_input in request["hosts"].items():
            environments[name] = _environment(host_input, request)
            hosts[name] = (
                _only_roles(environments[name]) if request.get("only_roles") else _host_plan(environments[name])
            )
            if name in request.get("variables", ()):
                hosts[name]["variables"] = _variables(environments[name])
    except RuntimeFailure as error:
        return {"refused": _redaction(request, environments).document({"host": name, "message": str(error)})}
    hide = _redaction(request, environments)
    return {"hosts": hide.document(hosts), "shown": hide.document(request.get("shown"))}


def describe_roles(here: TrainingEnvironment, plan: LaunchPlan) -> str:
    """Return the roles of a host in its job as text: ``chief, worker, ps``, ``mpirun, ranks 0-3``, ``worker 1``."""
    if here.strategy == contract.MPI:
        from scriptmode_runtime.strategies import mpi

        lead = [plan.main.name] if plan.main else []
        return ", ".join([*lead, _ranks(mpi.ranks(here))])
    processes = [*([plan.main] if plan.main else []), *plan.side_processes, *plan.services]
    return ", ".join(_role(process, here.strategy) for process in processes)


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


def _environment(host_input: Mapping[str, Any], request: Mapping[str, Any]) -> TrainingEnvironment:
    here = environment.from_files(
        host_input["base_dir"], {**_NO_FILES, **request.get("files", {}), **host_input["files"]}, host_input["environ"]
    )
    here = here._replace(source=request.get("source") or {})
    assumed = request.get("machine")
    if assumed is None:
        here = environment.with_machine(here, host_input["environ"])
        return here._replace(machine=here.machine._replace(gpus=host_input.get("gpus", here.machine.gpus)))
    devices = (
        machine.inspect(environ=host_input["environ"])
        if "gpus" not in host_input
        else Machine(1, host_input["gpus"], 0)
    )
    return here._replace(
        python=assumed["python"],
        machine=devices,
        mpirun=Mpirun(*assumed["mpirun"]) if assumed.get("mpirun") else None,
        ssh=Ssh(*assumed["ssh"]) if assumed.get("ssh") else None,
        node=here.host,
    )


def _only_roles(here: TrainingEnvironment) -> dict[str, Any]:
    return {"roles": describe_roles(here, plan_for(here, Command((), {}, here.base_dir, here.python)))}


def _host_plan(here: TrainingEnvironment) -> dict[str, Any]:
    user_code.check(here)
    command = user_code.command(here)
    plan = plan_for(here, command)
    document = as_document(plan._replace(files=()))
    for process in (document["main"], *document["beside"], *document["services"]):
        if process:
            # The variables that every process of a host has are in its files already.
            process["env"] = {name: text for name, text in process["env"].items() if command.env.get(name) != text}
    return {
        **document,
        "roles": describe_roles(here, plan),
        "strategy": here.strategy,
        "program": list(command.argv),
        "preparation": [
            {"name": each.name, "argv": list(each.argv), "env": {}, "cwd": each.cwd}
            for each in user_code.preparations(here)
        ],
        "files": {file.path: file.content for file in plan.files if file.mode == _TO_READ},
    }


def _variables(here: TrainingEnvironment) -> dict[str, str]:
    """Return the ``SM_*`` variables of the program, without the one that has all others as an object."""
    return {
        name: text
        for name, text in sorted(script_variables(here).items())
        if name.startswith("SM_") and name != "SM_TRAINING_ENV"
    }


def _redaction(request: Mapping[str, Any], environments: Mapping[str, TrainingEnvironment]) -> Redaction:
    """Return a function that hides the secrets of all hosts, and those of ``named``, in a text."""
    named: list[Mapping[str, Any]] = [dict(os.environ), *request.get("named", ())]
    for here in environments.values():
        named += [each for each in (here.hyperparameters, here.framework_parameters) if each not in named]
    for host_input in request["hosts"].values():
        # It has each host's own root directory.
        own = {name: value for name, value in host_input["environ"].items() if name != contract.BASE_DIR_VARIABLE}
        named += [own] if own not in named else []
    secrets = {secret for here in environments.values() for secret in (here.cluster.secret, here.settings.secret)}
    return Redaction(*named, values=secrets)


if __name__ == "__main__":
    sys.exit(main())
