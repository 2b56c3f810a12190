"""The toolkit's parts, asked one question after another in one process, and what ours make of the same host's files."""

import json
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

from contract.toolkit import clusters
from contract.toolkit.case import Case
from contract.toolkit.running import reference, variables

from scriptmode_runtime import _environment as environment, contract
from scriptmode_runtime._host.machine import Machine
from scriptmode_runtime._host.programs import Mpirun
from scriptmode_runtime._launch import user_code
from scriptmode_runtime._launch.variables import script_arguments, script_variables as told
from scriptmode_runtime._strategies import plan_for
from scriptmode_runtime._values.errors import RuntimeFailure

PROBE = Path(__file__).parent / "inside" / "probe.py"


class Toolkit:
    """The process that answers, and the one folder it reads."""

    def __init__(self, folder, process):
        self._folder = folder
        self._process = process

    def ask(self, about, case):
        """Give the toolkit's answer for a case, or ``{"error": ...}``; the case stays written."""
        self.write(case)
        question = {"about": about, "variables": variables(case, self._folder)}
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the toolkit ended with {self._process.wait(600)}"
        answer = json.loads(line)
        return answer.get("answer", answer)

    def write(self, case):
        shutil.rmtree(self._folder / "ml", ignore_errors=True)
        shutil.rmtree(self._folder / "home", ignore_errors=True)
        case.write(self._folder)

    def read(self, case):
        return environment.read(str(self._folder / "ml"), variables(case, self._folder))


@contextmanager
def toolkit(folder):
    """Start the process that answers; its folder is new."""
    Case("first").write(folder)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            (str(reference() / "python"), str(PROBE)),
            env=variables(Case("first"), folder),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        yield Toolkit(folder, process)
    finally:
        process.stdin.close()
        process.wait(600)
        process.stdout.close()


def our_script(here):
    return {"argv": list(script_arguments(here.hyperparameters)), "env": told(here)}


def our_cluster(here):
    """Give what our plan starts on this host, in the words of `probe.cluster`."""
    here = here._replace(machine=Machine(4, 0, 0), mpirun=Mpirun("mpirun", 4), node=here.cluster.lead.name)
    plan = plan_for(here, user_code.command(here))
    configs = {spec.name: json.loads(spec.env["TF_CONFIG"]) for spec in plan.services if "TF_CONFIG" in spec.env}
    main = plan.main.env.get("TF_CONFIG") if plan.main else None
    server = configs.get("ps")
    return {
        "TF_CONFIG": json.loads(main) if main else None,
        "ps": {"cluster": server["cluster"], "task": server["task"]} if server else None,
        "mpirun": here.strategy == contract.MPI,
    }


def answers(toolkit):
    found = {}
    for case in clusters.CLUSTERS:
        theirs = {"cluster": toolkit.ask("cluster", case)}
        found[case.id] = {"theirs": theirs, "ours": {"cluster": _ours(toolkit, case)}}
    return found


def _ours(toolkit, case):
    try:
        return our_cluster(toolkit.read(case))
    except RuntimeFailure as error:
        return {"error": str(error)}
