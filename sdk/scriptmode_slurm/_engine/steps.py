"""Job steps: the ``srun`` that runs a program on one node of a Slurm job, and the variables that it needs.

The standard input of ``srun`` is the only way to control the program. A signal to ``srun`` is none: at SIGTERM it has
every process of the step killed at once, and ``scancel --signal`` reaches each of them behind their launcher's back. At
the end of ``srun``, however it ends, the program's standard input ends, too.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import NamedTuple

from scriptmode.errors import PlatformError

#: The program of a host's agent. It is named, not imported: agents import this package.
_HOST_AGENT = "scriptmode_local._agent.host_agent"
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


def list_nodes(variables: Mapping[str, str]) -> Iterator[Node]:
    """Yield the nodes of a batch step's job in their order, from its variables; none for a process outside of jobs."""
    components: Sequence[int | None] = range(int(variables.get("SLURM_HET_SIZE", 0))) or [None]
    for component in components if "SLURM_JOB_ID" in variables else ():
        suffix = "" if component is None else f"_HET_GROUP_{component}"
        names = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_JOB_PARTITION")
        job, nodes, partition = (variables.get(name + suffix, "") for name in names)
        yield from (Node(name, component, int(job), partition) for name in _expand_nodes(nodes))


def _expand_nodes(nodes: str) -> list[str]:
    """Return the names of a list of nodes such as ``n[1-2]``, in its order; raise `PlatformError`."""
    command = ("scontrol", "show", "hostnames", nodes)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PlatformError(f"the nodes {nodes!r} cannot be listed: {done.stderr.strip()}")
    return done.stdout.split()


class StartedStep(NamedTuple):
    """The step of a host: where it runs, the process of its ``srun``, and this process's ends of its two pipes."""

    node: Node
    process: subprocess.Popen[bytes]
    commands: int
    events: int


#: The steps that this process started before it was the job's agent, by their hosts.
STARTED: ContextVar[Mapping[str, StartedStep]] = ContextVar("STARTED")


def start_steps(folder: str, hosts: Sequence[str], variables: Mapping[str, str]) -> dict[str, StartedStep]:
    """Start the agents of as many hosts as there are nodes, one on each; raise `PlatformError` or ``OSError``."""
    return {host: _start_step(folder, host, node, variables) for host, node in zip(hosts, list_nodes(variables))}


def _start_step(folder: str, host: str, node: Node, variables: Mapping[str, str]) -> StartedStep:
    their_commands, command_pipe = os.pipe()
    event_pipe, their_events = os.pipe()
    try:
        # With its parent it would end at once, and the step be killed: that ends at the end of its input instead.
        process = subprocess.Popen(
            step_command(node, host, (sys.executable, "-m", _HOST_AGENT, folder, host)),
            stdin=their_commands,
            stdout=their_events,
            env=step_environment(variables),
            cwd="/",
            start_new_session=True,
        )
    finally:
        os.close(their_commands)
        os.close(their_events)
    return StartedStep(node, process, command_pipe, event_pipe)


def run_batch_step(folder: str, *hosts: str) -> int:
    """Start the steps, and import and run the job's agent meanwhile; return its exit code."""
    # The agent tries once more what fails, and tells the user.
    with suppress(PlatformError, OSError):
        STARTED.set(start_steps(folder, hosts, os.environ))
    from scriptmode_local._agent import agent_process

    return agent_process.main([agent_process.FOREGROUND, folder])
