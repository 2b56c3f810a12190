"""Job steps: the ``srun`` that runs a program on one node of a Slurm job, and the variables that it needs.

The standard input of ``srun`` is the only way to control the program. A signal to ``srun`` is none: at SIGTERM it has
every process of the step killed at once, and ``scancel --signal`` reaches each of them behind their launcher's back. At
the end of ``srun``, however it ends, the program's standard input ends, too.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Callable, NamedTuple

from scriptmode_local._store.state import state_from_json

#: The program of a host's agent. It is named, not imported: agents import this package.
_HOST_AGENT = "scriptmode_local._agent.host_agent"
#: Seconds of a command before the job has an agent, which repeats it.
_EARLY_SECONDS = 5.0
#: Returns the names of a list of nodes such as ``n[1-2]``, in its order.
_Expand = Callable[[str], list[str]]
_PREFIXES = ("SLURM_", "SLURMD_", "SRUN_", "SBATCH_", "SALLOC_", "PMI_", "PMI2_", "PMIX_")
#: What srun and a host need of a batch step's variables: the cluster, the job, its size, and the components of a
#: heterogeneous job. The others are defaults of its options, such as SLURM_NTASKS and SLURM_MEM_PER_CPU, which the
#: job's own options set.
_JOB = re.compile(
    r"SLURM_(CONF|CONF_SERVER|CLUSTERS|JOB_ID|JOBID|JOB_NUM_NODES|JWT|SACK_SOCKET|HET_SIZE|\w+_HET_GROUP_\d+)"
)


class Node(NamedTuple):
    """A node of a job, or of one component of a heterogeneous job, which has a number and a partition of its own."""

    name: str
    component: int | None = None
    job: int = 0
    partition: str = ""


def step_command(node: Node, name: str, command: Sequence[str]) -> tuple[str, ...]:
    """Return the command of a step: ``command`` once on ``node``, with the standard streams of ``srun``.

    The step has all that the job has on the node, and shares it with other steps.
    """
    return (
        "srun",
        *(() if node.component is None else (f"--het-group={node.component}",)),
        f"--job-name={name}",
        "--nodes=1",
        "--ntasks=1",
        f"--nodelist={node.name}",
        # Not only the resources that no other step has: those of a job are those of its hosts.
        "--overlap",
        "--mem=0",
        # srun warns of binding where nothing binds processes, Slurm's own support of MPI would give the program the
        # variables of a rank, and srun reports how it ended by its exit code, and by a text that no log needs.
        "--cpu-bind=none",
        "--mpi=none",
        "--export=ALL",
        "--chdir=/",
        "--quiet",
        *command,
    )


def step_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of srun: those of the batch step that name the job, and all that are not Slurm's."""
    return {name: value for name, value in variables.items() if _JOB.fullmatch(name) or not name.startswith(_PREFIXES)}


def list_nodes(variables: Mapping[str, str], expand: _Expand) -> Iterator[Node]:
    """Yield the nodes of a batch step's job in their order, from its variables; none for a process outside of jobs."""
    components: Sequence[int | None] = range(int(variables.get("SLURM_HET_SIZE", 0))) or [None]
    for component in components if "SLURM_JOB_ID" in variables else ():
        suffix = "" if component is None else f"_HET_GROUP_{component}"
        names = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_JOB_PARTITION")
        job, nodes, partition = (variables.get(name + suffix, "") for name in names)
        yield from (Node(name, component, int(job), partition) for name in expand(nodes))


def _expand_early(nodes: str) -> list[str]:
    """Do what `commands.expand_nodes` does once, without its modules; raise ``SubprocessError`` or ``OSError``."""
    command = ("scontrol", "show", "hostnames", nodes)
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=_EARLY_SECONDS).stdout.split()


class StartedStep(NamedTuple):
    """The step of a host: where it runs, the process of its ``srun``, and this process's ends of its two pipes."""

    node: Node
    process: subprocess.Popen[bytes]
    commands: int
    events: int


#: The steps that this process started before it was the job's agent, by their hosts.
STARTED: ContextVar[dict[str, StartedStep]] = ContextVar("STARTED")


def start_steps(
    started: dict[str, StartedStep], folder: str, hosts: Iterable[str], variables: Mapping[str, str], expand: _Expand
) -> None:
    """Add to ``started`` the agents of the other hosts, of as many as there are nodes; raise ``OSError``."""
    for host, node in zip(hosts, list_nodes(variables, expand)):
        if host not in started:
            started[host] = _start_step(folder, host, node, variables)


def _start_step(folder: str, host: str, node: Node, variables: Mapping[str, str]) -> StartedStep:
    # With its parent it would end at once, and the step be killed: that ends at the end of its input instead.
    process = subprocess.Popen(
        step_command(node, host, (sys.executable, "-m", _HOST_AGENT, folder, host)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=step_environment(variables),
        cwd="/",
        start_new_session=True,
    )
    pipes = []
    for stream in filter(None, (process.stdin, process.stdout)):
        with stream:
            pipes.append(os.dup(stream.fileno()))
    return StartedStep(node, process, *pipes)


def run_batch_step(folder: str, *hosts: str) -> int:
    """Start the steps of a job that was not stopped, import and run its agent meanwhile; return its exit code."""
    started: dict[str, StartedStep] = {}
    STARTED.set(started)
    # The agent tries once more what fails, and tells the user.
    with suppress(OSError, TypeError, ValueError, subprocess.SubprocessError):
        if not state_from_json(json.loads(Path(folder, "state.json").read_bytes())).ended:
            start_steps(started, folder, hosts, os.environ, _expand_early)
    from scriptmode_local._agent import agent_process

    return agent_process.main([agent_process.FOREGROUND, folder])
