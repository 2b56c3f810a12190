"""The toolkit's parts, asked one question after another in one process, and what ours make of the same host's files."""

import json
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

from contract.toolkit import clusters
from contract.toolkit.case import Case
from contract.toolkit.running import reference, variables

from scriptmode_runtime import contract, environment, user_code
from scriptmode_runtime.errors import RuntimeFailure
from scriptmode_runtime.host.machine import Machine
from scriptmode_runtime.host.programs import Mpirun
from scriptmode_runtime.strategies import plan_for
from scriptmode_runtime.variables import script_arguments
from scriptmode_runtime.variables import script_variables as told

PROBE = Path(__file__).parent / "inside" / "probe.py"


class Toolkit:
    """The process that answers, and the one folder it reads."""

    def __init__(self, folder, process):
        self._folder = folder
        self._process = process

    def ask(self, about, case, **details):
        """Give the toolkit's answer for a case, or ``{"error": ...}``; the case stays written."""
        self.write(case)
        question = {"about": about, "variables": variables(case, self._folder), **details}
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
    plan = our_plan(here)
    configs = {spec.name: json.loads(spec.env["TF_CONFIG"]) for spec in plan.services if "TF_CONFIG" in spec.env}
    main = plan.main.env.get("TF_CONFIG") if plan.main else None
    server = configs.get("ps")
    return {
        "TF_CONFIG": json.loads(main) if main else None,
        "ps": {"cluster": server["cluster"], "task": server["task"]} if server else None,
        "mpirun": here.strategy == contract.MPI,
    }


def our_plan(here, gpus=0, neurons=0):
    """Return our plan on a machine with this number of accelerators and the Open MPI that the toolkit's options are for."""
    here = here._replace(machine=Machine(4, gpus, neurons), mpirun=Mpirun("mpirun", 4), node=here.cluster.lead.name)
    here = here._replace(python=str(reference() / "python"))
    return plan_for(here, user_code.command(here))


def answers(toolkit):
    found = {}
    for case in clusters.CLUSTERS:
        theirs = {"cluster": toolkit.ask("cluster", case)}
        found[case.id] = {"theirs": theirs, "ours": {"cluster": _ours(toolkit, case)}}
    for case in clusters.MPIRUN:
        gpus, neurons = clusters.ACCELERATORS.get(case.id.rpartition("machine with ")[2], (0, 0))
        words = toolkit.ask("mpirun", case, gpus=gpus, neurons=neurons)
        plan = our_plan(toolkit.read(case), gpus, neurons)
        files = {file.path: file.content for file in plan.files}
        theirs = {"mpirun": asked(words[1:], {})}
        found[case.id] = {"theirs": theirs, "ours": {"mpirun": asked(plan.main.argv[1:], files)}}
    return found


def _ours(toolkit, case):
    try:
        return our_cluster(toolkit.read(case))
    except RuntimeFailure as error:
        return {"error": str(error)}


#: Options that are followed by a value, beside those below that are taken apart.
VALUED = {"bind-to", "map-by"}


def asked(words, files):
    """Take the words after ``mpirun`` apart; one or two dashes are the same, and a later word wins."""
    found = {"hosts": {}, "mca": {}, "exports": {}, "options": {}, "flags": []}
    rest = iter(words)
    for word in rest:
        name = word.lstrip("-")
        if not word.startswith("-"):
            found["program"] = [word, *rest]
        elif name == "np":
            found["ranks"] = next(rest)
        elif name == "host":
            found["hosts"] = dict(_slots(host, ":") for host in next(rest).split(","))
        elif name == "hostfile":
            found["hosts"] = dict(_slots(line, " slots=") for line in files[next(rest)].splitlines())
        elif name == "mca":
            found["mca"].update([(next(rest), next(rest))])
        elif name == "x":
            variable, equals, value = next(rest).partition("=")
            found["exports"][variable] = value if equals else None
        elif name in VALUED:
            found["options"][name] = next(rest)
        else:
            found["flags"] = sorted({*found["flags"], name})
    return found


def _slots(text, between):
    host, _, slots = text.partition(between)
    return host, int(slots or 1)
