"""The batch script of a job, which sbatch gets: its options, and the start of the job's agent. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from scriptmode._core.spec.training_job import Limits, Resources
from scriptmode_slurm._engine.partitions import Partition, find_partitions, parse_time_limit, require_nodes
from scriptmode_slurm._engine.settings import REFUSED, SlurmSettings

if TYPE_CHECKING:
    from scriptmode_local._store.job_record import Job

#: Seconds for what max_run does not count: staging the inputs, stopping, delivering the artifacts.
AROUND_TRAINING = 900
#: Seconds before the end of an allocation at which the job's agent is told, if Slurm knows the end so early.
LEAST_NOTICE = 60
#: The notice takes at most this part of the time limit, of which a job of some minutes has little to spare.
_NOTICE_PART = 10
#: Runs in a heterogeneous job between the options of two components (sbatch(1), "HETEROGENEOUS JOB").
_NEXT_COMPONENT = "#SBATCH hetjob"
#: The number of GPUs in values such as ``gpu:4``, ``gpu:a100:4``, ``a100:4`` and ``4`` (sbatch(1), --gres and --gpus).
_GPUS = re.compile(r"(?:^|,)(?:gres[/:])?gpu(?::[A-Za-z][\w.-]*)?(?:[:=](\d+))?(?=[,(]|$)")
#: Variables of sbatch whose names do not follow from the option's: SBATCH_TIMELIMIT is --time (sbatch(1)).
_VARIABLES = {
    "array": ("SBATCH_ARRAY_INX",),
    "clusters": ("SBATCH_CLUSTERS", "SLURM_CLUSTERS"),
    "hint": ("SBATCH_HINT", "SLURM_HINT"),
    "mem": ("SBATCH_MEM_PER_NODE",),
    "switches": ("SBATCH_REQ_SWITCH", "SBATCH_WAIT4SWITCH"),
    "time": ("SBATCH_TIMELIMIT",),
    "verbose": ("SBATCH_DEBUG",),
}
#: What the lines of ``setup`` write to their standard error, beside the agent's log, and the mark of one that fails.
SETUP_LOG, SETUP_FAILED = "setup.log", "setup: exit code"
_COUNT = re.compile(r"(?:[A-Za-z][\w.-]*:)?(\d+)")


class Component(NamedTuple):
    """A part of a job with options of its own; a job of one partition has one."""

    partition: str
    hosts: tuple[str, ...]


def components(resources: Resources, settings: SlurmSettings) -> tuple[Component, ...]:
    """Return the parts of a job in the order of its hosts; neighbouring groups of one partition are one part."""
    default = str(settings.all_options().get("partition", ""))
    parts = groupby(resources.host_groups, lambda group: group.instance_type.partition(":")[2] or default)
    return tuple(Component(name, tuple(host for group in groups for host in group.hosts)) for name, groups in parts)


def time_limit(limits: Limits, settings: SlurmSettings, maximum: int | None = None) -> str:
    """Return the value of --time: the option's, else minutes of max_run unless it is the default; "" for neither.

    ``maximum`` is the partition's limit in seconds: the time around the training ends there.
    """
    if given := settings.all_options().get("time"):
        return str(given)
    if limits.max_run == Limits.max_run:
        return ""
    wanted = limits.max_run + AROUND_TRAINING
    seconds = max(limits.max_run, min(wanted, maximum)) if maximum else wanted
    return str(-(-seconds // 60))


def gpus_of_host(options: Mapping[str, str | bool], hosts: int) -> int:
    """Return the number of GPUs that the options ask for on each host; 0 for none."""
    for name in ("gres", "tres_per_task"):
        if match := _GPUS.search(str(options.get(name, ""))):
            return int(match[1] or 1)
    for name, factor in (("gpus_per_node", hosts), ("gpus_per_task", count_tasks(options, hosts)), ("gpus", 1)):
        if match := _COUNT.fullmatch(str(options.get(name, ""))):
            return int(match[1]) * factor // hosts
    return 0


def count_tasks(options: Mapping[str, str | bool], hosts: int) -> int:
    """Return the tasks of a job, for each of which sbatch counts CPUs: each host has those of one of a header's nodes.

    Without a number of nodes, the hosts have the tasks of the header in all.
    """
    tasks, of_node = (int(options.get(name, 0)) for name in ("ntasks", "ntasks_per_node"))
    if not tasks:
        return hosts * max(of_node, 1)
    return max(hosts, -(-tasks * hosts // count_nodes(options, hosts)))


def count_nodes(options: Mapping[str, str | bool], default: int) -> int:
    """Return the least number of nodes that the options of a header ask for; ``default`` where none does."""
    least = str(options.get("nodes", "")).partition("-")[0]
    tasks, of_node = (int(options.get(name, 0)) for name in ("ntasks", "ntasks_per_node"))
    return (int(least) if least.isdecimal() else 0) or (-(-tasks // of_node) if of_node else 0) or default


def render_batch_script(
    job: Job, settings: SlurmSettings, log: str, command: Sequence[str], partitions: Sequence[Partition] = ()
) -> str:
    """Return the batch script of a job, which runs ``command``: the job's agent, or its hosts.

    ``log`` is the path of its output on the first node; ``partitions`` are those of the cluster, if they are known.
    Raises `PlatformError` for a job for which they never have enough nodes.
    """
    parts = components(job.request.resources, settings)
    used = [partition for part in parts for partition in find_partitions(part.partition, partitions)]
    maximum = min(filter(None, (partition.maximum for partition in used)), default=None)
    time = time_limit(job.request.limits, settings, maximum)
    default = min(filter(None, (partition.default or partition.maximum for partition in used)), default=None)
    limit = parse_time_limit(time) if time else default
    # At this time before the end of its allocation the agent is told, to stop the hosts.
    notice = max(LEAST_NOTICE, round(job.stop_grace))
    notice = notice if limit is None else max(1, min(notice, limit // _NOTICE_PART))
    # Slurm replaces %j and its kind in the name of the log.
    output = log.replace("%", "%%")
    options: dict[str, str | bool] = {
        "job_name": job.request.name, "output": output, "error": output, "open_mode": "append",
    }  # fmt: skip
    lines = ["#!/bin/bash"]
    for component in parts:
        least = len(component.hosts)
        if not job.request.resources.instance_groups:
            least = min(settings.min_nodes or least, least)
        require_nodes(component.partition, least, partitions)
        options.update(_component_options(job, component, least, settings.all_options(component.partition)))
        options["signal"] = f"B:USR1@{notice}"
        own = settings.options_of(component.partition)
        options.update({name: value for name, value in own.items() if name != "partition"})
        if time:
            options["time"] = time
        # Of two lines for one option the later one counts.
        lines += [*settings.header.get("lines", ()), *(f"#SBATCH {_option(*item)}" for item in options.items())]
        lines.append(_NEXT_COMPONENT)
        # The name and the log are those of the whole job.
        options = {}
    lines[-1:] = ["", *_setup_lines(settings.setup, log), f"exec {shlex.join(command)}"]
    return "\n".join(lines) + "\n"


def _setup_lines(setup: Sequence[str], log: str) -> Sequence[str]:
    """Return the lines of a setup, whose standard error goes to a file; to the agent's log, too, if they exit."""
    if not setup:
        return ()
    file = shlex.quote(str(PurePath(log).with_name(SETUP_LOG)))
    return (
        f"exec 9>&2 2>{file}",
        f"trap {shlex.quote(f'cat {file} >&9')} EXIT",
        f"trap 'echo {SETUP_FAILED} $? in line $LINENO >&2' ERR",
        *setup,
        "trap - ERR EXIT",
        "exec 2>&9 9>&-",
    )


def _component_options(
    job: Job, component: Component, least: int, known: Mapping[str, str | bool]
) -> Iterator[tuple[str, str | bool]]:
    if component.partition:
        yield "partition", component.partition
    most = len(component.hosts)
    tasks = count_tasks(known, most)
    yield "nodes", str(most) if least == most else f"{least}-{most}"
    if "ntasks" in known:
        yield "ntasks", str(tasks)
    # With fewer nodes than hosts it would determine the number of nodes, and sbatch refuses it beside another option.
    if least == most and "ntasks_per_gpu" not in known:
        yield "ntasks_per_node", str(-(-tasks // most))
    limits = job.request.limits
    runs_again = limits.use_spot_instances or limits.max_retry_attempts
    yield "requeue" if runs_again else "no_requeue", True


def submission_environment(script: str, environ: Mapping[str, str], header: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables for sbatch without those that override the script or ``header``, or that no job has."""
    lines = (line.partition("--")[2] for line in script.splitlines() if line.startswith("#SBATCH --"))
    set_here = {option.partition("=")[0].replace("-", "_") for option in lines}
    others = {
        other for name in {*set_here, *header, *REFUSED} for other in _VARIABLES.get(name, (f"SBATCH_{name.upper()}",))
    }
    # Sites set the threads of their login nodes to 1; those of hosts follow from their CPUs.
    return {name: value for name, value in environ.items() if name not in {*others, "OMP_NUM_THREADS"}}


def _option(name: str, value: object) -> str:
    """Return an option for a line, in which sbatch knows the quotes and backslashes of a shell, alone."""
    option, text = f"--{name.replace('_', '-')}", str(value)
    if value is True:
        return option
    if not all(character.isalnum() or character in "_-+=:,.@%/[]()*!&|" for character in text):
        text = '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))
    return f"{option}={text}"
