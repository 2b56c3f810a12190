"""How it ended: an exit code, and a failure file that ends the search for the cause."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from scriptmode_runtime import contract
from scriptmode_runtime.outcome import LAUNCHER_FAILED, SIGNALLED, Cause, signal_name

if TYPE_CHECKING:
    from scriptmode_runtime.environment import TrainingEnvironment
    from scriptmode_runtime.plan import ProcessSpec

_ELIDED = "[...]"
#: Characters of a long last message that are shown from its beginning, where the name of the error stands.
_MESSAGE_START = 200
_TRACEBACK = "Traceback (most recent call last):"
_KILLED = -int(signal.SIGKILL)


def describe(environment: TrainingEnvironment, spec: ProcessSpec, status: int, output: str) -> Cause:
    """Say why a process's end failed the job; ``status`` is its exit code, or minus a signal's number."""
    host, process = environment.host, spec.name
    if process == "mpirun":
        host, process, status, output = _rank_of(environment, status, output)
    where = f"{host}, {process}: {_how(status)}"
    hint = _hint(output, status, spec)
    own = _users_own(environment)
    head = f"{where}\n{hint}\n" if hint else f"{where}\n"
    tail = excerpt(own or output, contract.FAILURE_LIMIT - len(head))
    return Cause(host, process, _exit_code(status), (head + tail).strip())


def excerpt(output: str, room: int) -> str:
    """Give the end of the output in at most ``room`` characters; of a long last error also its first words."""
    text = _readable(output)
    if len(text) <= room:
        return text
    message = _last_error(text)
    mark = f"{_ELIDED}\n"
    if len(message) + len(mark) > room:
        start = message[: min(_MESSAGE_START, room // 3)]
        rest = room - len(start) - len(_ELIDED) - 2
        return f"{start} {_ELIDED} {message[-rest:]}" if rest > 0 else message[:room]
    end = text[len(mark) - room :]
    # Whole lines, unless that would cut the error itself.
    _, newline, whole = end.partition("\n")
    return mark + (whole if newline and len(whole) >= len(message) else end)


def write(environment_output: str, message: str) -> None:
    """Write the failure file unless the script wrote its own; a folder that cannot be written is no further error."""
    path = os.path.join(environment_output, os.path.basename(contract.FAILURE_FILE))
    try:
        os.makedirs(environment_output, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path):
            return
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(message[: contract.FAILURE_LIMIT])
    except OSError:
        return


def _rank_of(environment: TrainingEnvironment, status: int, output: str) -> tuple[str, str, int, str]:
    """Name the rank behind the end of ``mpirun``, its host and its own lines."""
    from scriptmode_runtime.mpirun_output import first_failure, lines_of
    from scriptmode_runtime.strategies.mpi import processes_per_host

    failure = first_failure(output)
    hosts = [host.name for host in environment.cluster.hosts]
    if failure is None:
        return environment.host, "mpirun", status, output
    index = min(failure.rank // processes_per_host(environment), len(hosts) - 1)
    host = failure.node if failure.node in hosts else hosts[index]
    return host, f"rank {failure.rank}", failure.status, lines_of(output, failure.rank)


def _users_own(environment: TrainingEnvironment) -> str:
    """Give what the script itself wrote into its failure file."""
    try:
        with open(environment.path(contract.FAILURE_FILE), encoding="utf-8", errors="replace") as file:
            return file.read(contract.FAILURE_LIMIT).strip()
    except OSError:
        return ""


def _how(status: int) -> str:
    if status < 0:
        return f"killed by {signal_name(-status)}"
    return f"exit code {status}" if status else "ended while it was still needed"


def _exit_code(status: int) -> int:
    if status < 0:
        return SIGNALLED - status
    return status or LAUNCHER_FAILED


def _hint(output: str, status: int, spec: ProcessSpec) -> str:
    from scriptmode_runtime.hints import hint

    return hint(output, SIGNALLED + 9 if status == _KILLED else status, spec)


def _readable(output: str) -> str:
    """Drop what a terminal would not show: overwritten progress, colours."""
    import re

    text = re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", output.replace("\r\n", "\n"))
    return "\n".join(line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n")).strip()


def _last_error(text: str) -> str:
    """Give the text from the last traceback's error on, after its frames; "" without a traceback."""
    _, traceback, block = text.rpartition(_TRACEBACK)
    if not traceback:
        return ""
    lines = block.lstrip("\n").split("\n")
    for number, line in enumerate(lines):
        if line and not line[0].isspace():
            return "\n".join(lines[number:])
    return ""
