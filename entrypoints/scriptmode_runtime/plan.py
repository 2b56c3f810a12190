"""The processes that one host runs, as data. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

#: Every host of the cluster has its source, requirements and directories.
HOSTS_READY = "hosts_ready"
#: The trainers of every host ended without a failure.
TRAINERS_ENDED = "trainers_ended"
#: ``mpirun`` ended; the first host announces it.
MPIRUN_ENDED = "mpirun_ended"
#: The daemons of ``mpirun`` ended without a failure, on this host and then on all others.
DAEMONS_ENDED = "daemons_ended"
#: Every rank of a stopped job has saved its state.
RANKS_SAVED = "ranks_saved"

#: How a process is stopped: its own process group, or those of the MPI ranks it started, because ``mpirun`` and its
#: daemons answer SIGTERM by killing them.
STOP_GROUP = "group"
STOP_RANKS = "ranks"


class ProcessSpec(NamedTuple):
    """One process: its command, its variables in addition to the inherited ones, and its working directory."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    stop: str = STOP_GROUP


class Wait(NamedTuple):
    """An event to wait for; ``timeout`` in seconds, None to wait as long as every host is alive."""

    event: str
    timeout: float | None = None


class File(NamedTuple):
    """A file for the processes, written before they start; only this user may read it."""

    path: str
    content: str
    mode: int = 0o600


class LaunchPlan(NamedTuple):
    """Everything that one host runs, and what it waits for."""

    #: The process whose exit code is this host's result. None: this host does not train.
    main: ProcessSpec | None
    #: Started first and stopped after main; one that ends earlier is a failure, but for those that ``optional`` names.
    services: tuple[ProcessSpec, ...] = ()
    #: Waits between the start of the services and of main.
    before: tuple[Wait, ...] = ()
    after: tuple[Wait, ...] = ()
    files: tuple[File, ...] = ()
    #: Processes beside main that run to their own ends, such as an evaluator; a failure of one fails the job.
    side_processes: tuple[ProcessSpec, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def trainers(self) -> tuple[ProcessSpec, ...]:
        """The main process, if this host has one, and the side processes."""
        return (*((self.main,) if self.main else ()), *self.side_processes)


class Command(NamedTuple):
    """The command of the user's program on this host."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    #: The interpreter that has the user's requirements.
    python: str
    #: Further variables, where the program is a task of TensorFlow's cluster.
    task_env: Mapping[str, str] = {}

    def plan(self) -> LaunchPlan:
        """Return the plan of a host that runs the program alone, without waits for other hosts."""
        return LaunchPlan(main=ProcessSpec("script", self.argv, self.env, self.cwd))


def as_document(plan: LaunchPlan) -> dict[str, object]:
    """Return the plan as the JSON document that ``train --plan`` prints."""
    return {
        "main": plan.main and plan.main._asdict(),
        "beside": [trainer._asdict() for trainer in plan.side_processes],
        "services": [service._asdict() for service in plan.services],
        "before": [wait._asdict() for wait in plan.before],
        "after": [wait._asdict() for wait in plan.after],
        "files": [file._asdict() for file in plan.files],
    }
