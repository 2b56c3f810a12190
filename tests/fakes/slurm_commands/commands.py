"""``squeue``, ``sacct``, ``sinfo``, ``sbatch``, ``scontrol`` and ``scancel`` of the fake Slurm: arguments to text.

What they print has the fields of recorded output (``slurm_records``). An option that the fake does not know is refused,
so that a test never passes for an option that does nothing.
"""

import getopt
import os
import shlex
import signal
import sys
import time
from pathlib import Path

from fakes.slurm_commands import jobs, records, steps

_SBATCH = (
    "parsable test-only verbose array= job-name= output= error= open-mode= nodes= ntasks= ntasks-per-node= mem= gres= "
    "partition= account= time= comment= signal= requeue no-requeue begin="
)
_UNREACHABLE = "Unable to contact slurm controller (connect failure)"
_UNKNOWN = "Invalid job id specified"


class UsageError(Exception):
    """An option is unknown, or its value is missing."""


class RefusalError(Exception):
    """A command fails with exit code 1: what it prints to its standard error."""


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
        return 1
    sys.stdout.write(answer)
    return 0


def _parse(arguments, names):
    """Return the options by their names, "" for those without a value, and the other arguments."""
    try:
        found, rest = getopt.getopt(arguments, "", names.split())
    except getopt.GetoptError as error:
        raise UsageError(f"unrecognized option '--{error.opt}'") from error
    return {name.lstrip("-"): value for name, value in found}, rest


def _unreachable(name):
    text = {
        "sbatch": f"sbatch: error: Batch job submission failed: {_UNREACHABLE}",
        "scontrol": f"slurm_load_jobs error: {_UNREACHABLE}",
        "squeue": f"slurm_load_jobs error: {_UNREACHABLE}",
    }.get(name, f"{name}: error: {_UNREACHABLE}")
    raise RefusalError(text)


def _sbatch(state, arguments):
    options, rest = _parse(arguments, _SBATCH)
    script = Path(rest[0]).read_text()
    options = {"job-name": Path(rest[0]).name, **_directives(script), **options}
    if "test-only" in options:
        lines = "".join(f"sbatch: {name:20}: {value or 'set'}\n" for name, value in options.items())
        raise RefusalError(f"sbatch: defined options\n{lines}sbatch: end of defined options")
    _refuse(state, options)
    job = jobs.submit(state, options, script, dict(os.environ), str(Path.cwd()))
    return f"{job['id']}\n" if "parsable" in options else f"Submitted batch job {job['id']}\n"


def _directives(script):
    """Return the options of the lines ``#SBATCH``, which end at the first command."""
    options = {}
    for line in script.splitlines()[1:]:
        if line.startswith("#SBATCH"):
            found, rest = _parse(shlex.split(line[len("#SBATCH") :], comments=True), _SBATCH)
            if rest:
                raise UsageError(f"the fake does not know #SBATCH {rest[0]}")
            options.update(found)
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return options


def _refuse(state, options):
    """Refuse what the recorded cluster refuses."""
    failed = "sbatch: error: Batch job submission failed:"
    partition = options.get("partition", "batch")
    if unknown := set(partition.split(",")) - {line.split("|")[0].rstrip("*") for line in records.PARTITIONS.split()}:
        first = f"sbatch: error: invalid partition specified: {min(unknown)}"
        raise RefusalError(f"{first}\n{failed} Invalid partition name specified")
    if options.get("account", "research") not in ("research", "vision"):
        raise RefusalError(f"{failed} Invalid account or account/partition combination specified")
    gres = options.get("gres", "gpu:0")
    if not gres.startswith("gpu"):
        raise RefusalError("sbatch: error: Invalid generic resource (gres) specification")
    if int(gres.rpartition(":")[2]) > 2:
        raise RefusalError(f"{failed} Requested node configuration is not available")


def _squeue(state, arguments):
    options, _ = _parse(arguments, "noheader format= states= sort= partition= user=")
    if not {"noheader", "format", "states"} <= options.keys():
        raise UsageError("the fake knows squeue --noheader --states=STATE --format=FORMAT alone")
    chosen = [job for job in state["jobs"].values() if not job.get("is_purged")]
    if options["states"] != "all":
        chosen = [job for job in chosen if job["state"] == options["states"]]
    if "partition" in options:
        chosen = [job for job in chosen if job["partition"] == options["partition"]]
    return "".join(f"{records.squeue_line(job, options['format'])}\n" for job in chosen)


def _sacct(state, arguments):
    options, _ = _parse(arguments, "noheader parsable2 allocations jobs= format=")
    if not {"noheader", "parsable2", "allocations", "jobs", "format"} <= options.keys():
        raise UsageError("the fake knows sacct --noheader --parsable2 --allocations --jobs=N --format=FIELDS alone")
    asked = options["format"].split(",")
    if unknown := [name for name in asked if name not in records.SACCT]:
        raise RefusalError(f'sacct: error: Invalid field requested: "{unknown[0]}"')
    job = state["jobs"].get(options["jobs"])
    return "" if job is None else "|".join(records.SACCT[name](job) for name in asked) + "\n"


def _sinfo(_, arguments):
    if arguments != ["--noheader", "--all", "--format=%P|%l|%L|%D"]:
        raise UsageError("the fake knows sinfo --noheader --all --format=%P|%l|%L|%D alone")
    return records.PARTITIONS


def _scontrol(state, arguments):
    options, (verb, *words) = _parse(arguments, "oneliner")
    if verb == "show":
        return _show(state, words, "oneliner" in options)
    if verb != "requeue":
        raise UsageError(f"the fake does not know scontrol {verb}")
    job = jobs.find(state, words[0])
    if job is None:
        raise RefusalError(f"{_UNKNOWN} for job {words[0]}")
    if job["state"] == jobs.PENDING:
        raise RefusalError(f"Job is pending execution for job {words[0]}")
    jobs.requeue(state, job)
    return ""


def _show(state, words, one_line):
    if words == ["config"]:
        return records.CONFIG
    if words[0] == "hostnames":
        return "".join(f"{name}\n" for name in jobs.NODES if words[1] in (name, steps.node_list(jobs.NODES)))
    if not one_line:
        raise UsageError("the fake knows scontrol --oneliner show alone")
    if words[0] == "job":
        job = jobs.find(state, words[1])
        if job is None:
            raise RefusalError(f"slurm_load_jobs error: {_UNKNOWN}")
        return records.job_line(job)
    raise UsageError(f"the fake does not know scontrol show {words[0]}")


def _scancel(state, arguments):
    options, numbers = _parse(arguments, "signal= full quiet state=")
    for number in numbers:
        job = jobs.find(state, number)
        if job is None or ("state" in options and job["state"] != options["state"]):
            continue
        if "signal" in options:
            steps.signal_job(state["folder"], job, signal.Signals[f"SIG{options['signal']}"])
        else:
            jobs.cancel(state, job, os.getuid())
    return ""


_COMMANDS = {
    "sbatch": _sbatch, "squeue": _squeue, "sacct": _sacct, "sinfo": _sinfo, "scontrol": _scontrol, "scancel": _scancel,
}  # fmt: skip
