"""What one host would run, as data. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Every host of the cluster has its source, requirements and folders.
HOSTS_READY = "hosts_ready"
#: The trainers of every host ended well.
TRAINERS_ENDED = "trainers_ended"
#: ``mpirun`` ended, which the first host tells.
MPIRUN_ENDED = "mpirun_ended"
#: Its daemons on this host ended as they should, and then those on all others.
DAEMONS_ENDED = "daemons_ended"
#: No rank of a stopped job has anything more to save.
RANKS_SAVED = "ranks_saved"
#: A service of this host listens at the wait's endpoint; no word of other hosts.
PORT_OPEN = "port_open"

#: How a process is stopped: its own process group, or those of the MPI ranks it started, because ``mpirun`` and its
#: daemons answer SIGTERM by killing them.
STOP_GROUP = "group"
STOP_RANKS = "ranks"


class ProcessSpec(NamedTuple):
    """One process: what is run, with which variables beside the inherited ones, and where."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    stop: str = STOP_GROUP


class Wait(NamedTuple):
    """Something other hosts must reach first; ``timeout`` in seconds, None as long as every host is alive."""

    event: str
    timeout: float | None = None
    #: Host and port, of PORT_OPEN.
    endpoint: tuple[str, int] = ("", 0)


class File(NamedTuple):
    """A file that the processes read, written before they start; only this user may read it."""

    path: str
    content: str
    mode: int = 0o600


class LaunchPlan(NamedTuple):
    """All that one host runs."""

    #: Its exit code is this host's result. None: this host trains nothing itself.
    main: ProcessSpec | None
    #: Started first; they outlive main; an early end is a failure; stopped at the end.
    services: tuple[ProcessSpec, ...] = ()
    #: Between the starts of services and of main.
    before: tuple[Wait, ...] = ()
    after: tuple[Wait, ...] = ()
    files: tuple[File, ...] = ()
    #: Run to their own ends beside main, such as an evaluator; a failure of theirs is one of the job's.
    side_processes: tuple[ProcessSpec, ...] = ()


class Command(NamedTuple):
    """How the user's program is started on this host."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    #: The interpreter that has the user's requirements.
    python: str


def as_document(plan: LaunchPlan) -> dict[str, Any]:
    """Give the plan as ``train --plan`` prints it."""
    return {
        "main": _process(plan.main) if plan.main else None,
        "beside": [_process(trainer) for trainer in plan.side_processes],
        "services": [_process(service) for service in plan.services],
        "before": [wait._asdict() for wait in plan.before],
        "after": [wait._asdict() for wait in plan.after],
        "files": [file._asdict() for file in plan.files],
    }


def _process(spec: ProcessSpec) -> dict[str, Any]:
    return {"name": spec.name, "argv": list(spec.argv), "env": dict(spec.env), "cwd": spec.cwd, "stop": spec.stop}
