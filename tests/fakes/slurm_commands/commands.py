"""``squeue``, ``sacct``, ``sbatch``, ``scontrol``, ``scancel`` and ``sinfo`` of the fake Slurm: arguments to text.

What they print has the fields of recorded output (``slurm_records``); `tests/slurm/test_fake.py` asks a real cluster the
same. An option that the fake does not know is refused, so that a test never passes for an option that does nothing.
"""

import os
import re
import shlex
import sys
import time
from pathlib import Path

from fakes.slurm_commands import jobs, records, steps
from fakes.slurm_commands.options import UsageError, parse, parse_anywhere

_SBATCH_LONG = (
    "parsable test-only wrap= job-name= output= error= nodes= ntasks= ntasks-per-node= cpus-per-task= mem= mem-per-cpu= "
    "gres= gpus= gpus-per-node= partition= account= qos= time= comment= chdir= signal= requeue no-requeue open-mode= "
    "export= constraint= nodelist= exclude= reservation= exclusive begin= dependency= mail-type= mail-user= hold nice= "
    "input= licenses= wckey= deadline= help quiet hint= tmp= threads-per-core= kill-on-invalid-dep= get-user-env"
)
_SBATCH_SHORT = "J:o:e:N:n:c:p:A:q:t:D:C:w:x:d:i:Hb:Q"
_SBATCH_NAMES = {
    "J": "job-name", "o": "output", "e": "error", "N": "nodes", "n": "ntasks", "c": "cpus-per-task", "p": "partition",
    "A": "account", "q": "qos", "t": "time", "D": "chdir", "C": "constraint", "w": "nodelist", "x": "exclude",
    "d": "dependency", "i": "input", "H": "hold", "b": "begin", "Q": "quiet",
}  # fmt: skip
_HELP = "".join(
    f"      --{name.rstrip('=')}{'=value' if name.endswith('=') else ''}\n" for name in _SBATCH_LONG.split()
)
_UNREACHABLE = "Unable to contact slurm controller (connect failure)"
_UNKNOWN = "Invalid job id specified"
#: Times that `scontrol update` may set.
_START_TIME = re.compile(r"now(?:\+(\d+))?$")


class RefusalError(Exception):
    """A command fails: what it prints to its standard error, and its exit code."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


def main(name, folder, arguments):
    """Run one command; return its exit code."""
    try:
        with jobs.opened(folder) as state:
            state["asks"].append([name, time.time(), arguments])
            is_down = state["is_down"] and name != "sacct"
            answer = _unreachable(name) if is_down else _COMMANDS[name](state, arguments)
    except UsageError as error:
        print(f'{name}: {error}\nTry "{name} --help" for more information', file=sys.stderr)
        return 255 if name == "sbatch" else 1
    except RefusalError as refusal:
        print(refusal, file=sys.stderr)
        return refusal.code
    sys.stdout.write(answer)
    return 0


def _unreachable(name):
    text = {
        "sbatch": f"sbatch: error: Batch job submission failed: {_UNREACHABLE}",
        "scontrol": f"slurm_load_jobs error: {_UNREACHABLE}",
        "squeue": f"slurm_load_jobs error: {_UNREACHABLE}",
        "sinfo": f"slurm_load_partitions: {_UNREACHABLE}",
    }.get(name, f"{name}: error: {_UNREACHABLE}")
    raise RefusalError(text)


def _sbatch(state, arguments):
    options, rest = parse(arguments, _SBATCH_SHORT, _SBATCH_LONG, _SBATCH_NAMES)
    if "help" in options:
        return _HELP
    if "wrap" in options:
        script = f"#!/bin/sh\n# This script was created by sbatch.\n\n{options['wrap']}\n"
    else:
        script = Path(rest[0]).read_text() if rest else sys.stdin.read()
    first, *others = _directives(script)
    named = {} if "wrap" in options else {"job-name": Path(rest[0]).name if rest else "sbatch"}
    options = {**named, **first, **options}
    if not script.startswith("#!"):
        raise RefusalError(
            "sbatch: error: This does not look like a batch script.  The first\nsbatch: error: line must start with #! followed by the path to an interpreter."
        )
    for each in (options, *others):
        _refuse(state, {**each, **{name: "" for name in options if name == "test-only"}})
    if "test-only" in options:
        expected, partition = records.time_text(jobs.now(state)), options.get("partition", "batch")
        text = f"Job {state['next']} to start at {expected} using 1 processors on nodes node1 in partition {partition}"
        print(f"sbatch: {text}", file=sys.stderr)
        return ""
    environment = {} if options.get("export") in ("NONE", "NIL") else dict(os.environ)
    job = jobs.submit(state, options, script, environment, str(Path.cwd()), others)
    return f"{job['id']}\n" if "parsable" in options else f"Submitted batch job {job['id']}\n"


def _directives(script):
    """Return the options of the lines ``#SBATCH``, which end at the first command, for each component of the job."""
    components = [{}]
    for line in script.splitlines()[1:]:
        if line.startswith("#SBATCH"):
            words = shlex.split(line[len("#SBATCH") :], comments=True)
            options, rest = parse(words, _SBATCH_SHORT, _SBATCH_LONG, _SBATCH_NAMES)
            if rest == ["hetjob"]:
                components.append({})
            elif rest:
                raise UsageError(f"the fake does not know #SBATCH {rest[0]}")
            components[-1].update(options)
        elif line.strip() and not line.startswith("#"):
            break
    return components


def _refuse(state, options):
    """Refuse what the recorded cluster refuses, or what the test prepared."""
    failed = "allocation failure:" if "test-only" in options else "sbatch: error: Batch job submission failed:"
    if state["refusals"]:
        raise RefusalError(f"{failed} {state['refusals'].pop(0)}")
    partition = options.get("partition", "batch")
    if unknown := [name for name in partition.split(",") if name not in records.partitions()]:
        first = f"sbatch: error: invalid partition specified: {unknown[0]}"
        raise RefusalError(f"{first}\n{failed} Invalid partition name specified")
    if options.get("account", "research") not in ("research", "vision"):
        raise RefusalError(f"{failed} Invalid account or account/partition combination specified")
    gres = options.get("gres", "gpu:0")
    if not gres.startswith("gpu"):
        raise RefusalError("sbatch: error: Invalid generic resource (gres) specification")
    if int(gres.rpartition(":")[2]) > 2:
        raise RefusalError(f"{failed} Requested node configuration is not available")
    if "test-only" in options and int(options.get("nodes", "1").partition("-")[0]) > (1 if partition == "short" else 2):
        raise RefusalError(f"{failed} Requested node configuration is not available")


def _squeue(state, arguments):
    names = {
        "h": "noheader",
        "o": "format",
        "j": "jobs",
        "t": "states",
        "S": "sort",
        "p": "partition",
        "u": "user",
        "n": "name",
    }
    options, rest = parse(
        arguments, "ho:j:t:S:p:u:n:", "noheader format= jobs= states= sort= partition= user= name= me", names
    )
    if rest:
        raise UsageError(f"unrecognized argument {rest[0]}")
    chosen = [job for job in state["jobs"].values() if not job.get("is_purged")]
    if "jobs" in options:
        numbers = options["jobs"].split(",")
        chosen = [job for job in chosen if str(job["id"]) in numbers]
        if not chosen:
            raise RefusalError(f"slurm_load_jobs error: {_UNKNOWN}")
    states = options.get("states", "")
    if states.lower() != "all":
        chosen = [
            job for job in chosen if (job["state"] in states.upper().split(",") if states else jobs.is_active(job))
        ]
    if "partition" in options:
        chosen = [job for job in chosen if job["partition"] == options["partition"]]
    if "name" in options:
        chosen = [job for job in chosen if job["name"] == options["name"]]
    for job in chosen:
        jobs.asked(state, job)
    template = options.get("format", "%i|%P|%j|%u|%t|%M|%D|%R")
    lines = [records.squeue_line(part, template) for job in chosen for part in jobs.components(job)]
    header = [] if "noheader" in options else ["JOBID|PARTITION|NAME|USER|ST|TIME|NODES|NODELIST(REASON)"]
    return "".join(f"{line}\n" for line in header + lines)


def _sacct(state, arguments):
    names = {"n": "noheader", "P": "parsable2", "X": "allocations", "D": "duplicates", "j": "jobs", "o": "format"}
    long = "noheader parsable2 allocations duplicates jobs= format="
    options, _ = parse(arguments, "nPXDj:o:", long, names)
    if not {"parsable2", "allocations", "jobs"} <= options.keys():
        raise UsageError("the fake knows sacct --parsable2 --allocations --jobs=N alone")
    asked = options.get("format", "JobID,JobName,Partition,Account,AllocCPUS,State,ExitCode").split(",")
    if unknown := [name for name in asked if name.lower() not in records.SACCT]:
        raise RefusalError(f'sacct: error: Invalid field requested: "{unknown[0]}"')
    lines = [] if "noheader" in options else ["|".join(asked)]
    for number in options["jobs"].split(","):
        job = state["jobs"].get(number)
        if job is None:
            continue
        runs = [{**job, **run} for run in job["ended_runs"]] if "duplicates" in options else []
        parts = [part for run in [*runs, job] for part in jobs.components(run)]
        lines += ["|".join(records.SACCT[name.lower()](part) for name in asked) for part in parts]
        jobs.asked(state, job)
    return "".join(f"{line}\n" for line in lines)


def _scontrol(state, arguments):
    options, words = parse_anywhere(arguments, "oQ", "oneliner quiet", {"o": "oneliner", "Q": "quiet"})
    verb, *words = words
    if verb == "ping":
        return "Slurmctld(primary) at controller is UP\n"
    if verb == "show":
        return _show(state, words, "oneliner" in options)
    if verb == "update":
        return _update(state, dict(word.split("=", 1) for word in words))
    job = jobs.find(state, words[0])
    if job is None:
        raise RefusalError(f"{_UNKNOWN} for job {words[0]}")
    if verb in ("requeue", "requeuehold"):
        if job["state"] == jobs.PENDING:
            raise RefusalError(f"Job is pending execution for job {words[0]}")
        jobs.requeue(state, job, "JobHeldUser" if verb == "requeuehold" else "BeginTime")
    elif verb == "release":
        jobs.go_on(state, job)
    elif verb == "hold":
        job.update(reason="JobHeldUser", step={"state": jobs.PENDING})
        job["history"] = job["history"] or [{"state": jobs.RUNNING}]
    else:
        raise UsageError(f"the fake does not know scontrol {verb}")
    return ""


def _show(state, words, one_line):
    what, names = words[0], words[1:]
    if what.startswith("hostname"):
        return "".join(f"{name}\n" for name in records.expand(names[0]))
    if what == "config":
        return records.config()
    if not one_line:
        raise UsageError("the fake knows scontrol --oneliner show alone")
    if what == "job":
        job = jobs.find(state, names[0])
        if job is None:
            raise RefusalError(f"slurm_load_jobs error: {_UNKNOWN}")
        jobs.asked(state, job)
        return "".join(records.job_line(part) for part in jobs.components(job))
    if what == "node":
        wanted = records.expand(names[0]) if names else jobs.NODES
        if unknown := [name for name in wanted if name not in jobs.NODES]:
            raise RefusalError(f"Node {unknown[0]} not found")
        return "".join(records.node_line(name, state.get("nodes", {}).get(name, "IDLE")) for name in wanted)
    if what == "partition":
        return "".join(records.partitions().values())
    raise UsageError(f"the fake does not know scontrol show {what}")


def _update(state, values):
    job = jobs.find(state, values.pop("JobId", "0"))
    if job is None:
        raise RefusalError(f"{_UNKNOWN} for job")
    for name, value in values.items():
        match = _START_TIME.match(value)
        if name == "StartTime" and match:
            if job["state"] != jobs.PENDING:
                raise RefusalError(f"Job is no longer pending execution for job {job['id']}")
            jobs.start_after(state, job, float(match[1] or 0))
        elif name == "Comment":
            job["options"]["comment"] = value
        else:
            raise UsageError(f"the fake does not know scontrol update {name}={value}")
    return ""


def _scancel(state, arguments):
    names = {"s": "signal", "b": "batch", "f": "full", "Q": "quiet", "t": "state", "n": "name", "u": "user"}
    options, numbers = parse_anywhere(arguments, "s:bfQt:n:u:", "signal= batch full quiet state= name= user=", names)
    for number in numbers:
        job = jobs.find(state, number)
        if job is None or ("state" in options and job["state"] != options["state"].upper()):
            continue
        if "signal" in options:
            signal_number = records.signal_number(options["signal"])
            steps.signal_job(state["folder"], job, signal_number, batch="batch" in options or "full" in options)
        else:
            jobs.cancel(state, job, os.getuid())
    return ""


def _sinfo(state, arguments):
    names = {"h": "noheader", "o": "format", "p": "partition", "N": "Node"}
    options, _ = parse(arguments, "ho:p:N", "noheader format= partition= Node", names)
    lines = [] if "noheader" in options else ["PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST"]
    for name, line in records.partitions().items():
        if options.get("partition", name) == name:
            lines.append(records.sinfo_line(line, options.get("format", "%P %a %l %D %T %N")))
    return "".join(f"{line}\n" for line in lines)


_COMMANDS = {
    "sbatch": _sbatch, "squeue": _squeue, "sacct": _sacct, "scontrol": _scontrol, "scancel": _scancel, "sinfo": _sinfo,
}  # fmt: skip
