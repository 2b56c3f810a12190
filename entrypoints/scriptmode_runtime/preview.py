"""``python -m scriptmode_runtime.preview``: what every host of a job would run, asked at once; nothing is run.

Standard input is a JSON object, standard output another. The input has

* ``hosts``: for each host by its name ``base_dir``, ``environ`` (its variables), ``files`` (the platform's, by the
  names of `contract`) and ``gpus``, if not as many as this machine has;
* ``files``: those that are the same on every host;
* ``machine``: what those other machines have: ``python``, ``mpirun`` (its path and the major version of its Open MPI),
  ``ssh`` (paths of client, server and key generator), each of them null where there is none. Null as a whole: the
  hosts are processes of this machine, with this interpreter;
* ``source``: texts of the source's files by their names, at least of those that decide how it is started;
* ``only_roles``: whether no more than the roles is wanted;
* ``shown``: anything that is to be shown; it comes back without secrets, also those of the objects in the list
  ``named``.

The output has ``hosts``, each with its ``roles``, ``strategy`` and processes, and ``shown``; or ``refused``, the host
and what is wrong with its part.
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
from scriptmode_runtime.redaction import Redaction
from scriptmode_runtime.strategies import plan_for

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
    """Answer the question on standard input; a job that is refused is an answer too."""
    if os.name != "posix":
        import posixpath

        # The hosts are Linux, whatever this is.
        os.path, os.pathsep = posixpath, ":"
    sys.stdout.write(json.dumps(preview(json.load(sys.stdin))))
    return 0


def preview(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Give the output for an input, both as the module's text says."""
    seen: dict[str, TrainingEnvironment] = {}
    hosts: dict[str, Any] = {}
    name = ""
    try:
        for name, told in asked["hosts"].items():
            seen[name] = _environment(told, asked)
            hosts[name] = _only_roles(seen[name]) if asked.get("only_roles") else _part(seen[name])
    except RuntimeFailure as error:
        return {"refused": _redaction(asked, seen).document({"host": name, "message": str(error)})}
    hide = _redaction(asked, seen)
    return {"hosts": hide.document(hosts), "shown": hide.document(asked.get("shown"))}


def describe_roles(here: TrainingEnvironment, plan: LaunchPlan) -> str:
    """Name what a host is in its job, as people say it: ``chief, worker, ps``, ``mpirun, ranks 0-3``, ``worker 1``."""
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
    # All of them are workers: their numbers tell them apart.
    return f"{process.name} {json.loads(process.env['TF_CONFIG'])['task']['index']}"


def _environment(told: Mapping[str, Any], asked: Mapping[str, Any]) -> TrainingEnvironment:
    here = environment.from_files(
        told["base_dir"], {**_NO_FILES, **asked.get("files", {}), **told["files"]}, told["environ"]
    )
    here = here._replace(source=asked.get("source") or {})
    given = asked.get("machine")
    if given is None:
        return environment.with_machine(here, told["environ"])
    there = machine.inspect(environ=told["environ"]) if "gpus" not in told else Machine(1, told["gpus"], 0)
    return here._replace(
        python=given["python"],
        machine=there,
        mpirun=Mpirun(*given["mpirun"]) if given.get("mpirun") else None,
        ssh=Ssh(*given["ssh"]) if given.get("ssh") else None,
        node=here.host,
    )


def _only_roles(here: TrainingEnvironment) -> dict[str, Any]:
    return {"roles": describe_roles(here, plan_for(here, Command((), {}, here.base_dir, here.python)))}


def _part(here: TrainingEnvironment) -> dict[str, Any]:
    user_code.check(here)
    command = user_code.command(here)
    plan = plan_for(here, command)
    document = as_document(plan._replace(files=()))
    for process in (document["main"], *document["beside"], *document["services"]):
        if process:
            # What every process of a host is given, its files tell already.
            process["env"] = {name: text for name, text in process["env"].items() if command.env.get(name) != text}
    return {
        **document,
        "roles": describe_roles(here, plan),
        "strategy": here.strategy,
        "preparation": [
            {"name": each.name, "argv": list(each.argv), "env": {}, "cwd": each.cwd}
            for each in user_code.preparations(here)
        ],
        "files": {file.path: file.content for file in plan.files if file.mode == _TO_READ},
    }


def _redaction(asked: Mapping[str, Any], seen: Mapping[str, TrainingEnvironment]) -> Redaction:
    """Give what takes all hosts' secrets, and those of ``named``, out of a text."""
    named: list[Mapping[str, Any]] = [dict(os.environ), *asked.get("named", ())]
    for here in seen.values():
        named += [each for each in (here.hyperparameters, here.framework_parameters) if each not in named]
    for told in asked["hosts"].values():
        # Each host has its own root folder there.
        own = {name: value for name, value in told["environ"].items() if name != contract.BASE_DIR_VARIABLE}
        named += [own] if own not in named else []
    secrets = {secret for here in seen.values() for secret in (here.cluster.secret, here.settings.secret)}
    return Redaction(*named, values=secrets)


if __name__ == "__main__":
    sys.exit(main())
