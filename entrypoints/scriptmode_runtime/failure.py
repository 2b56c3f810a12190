"""The failure of a job as a value. Pure."""

from __future__ import annotations

import signal
from typing import NamedTuple

#: Exit code of a failure outside the user's program: before its start, a lost host, a service that ended early.
LAUNCHER_FAILED = 1
#: The first line of a traceback.
TRACEBACK = "Traceback (most recent call last):"
#: The lines between two tracebacks of one error.
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
#: A process ended by signal n counts as ended with this much more (POSIX shells).
SIGNALLED = 128


def signal_name(number: int) -> str:
    """Return a signal's name; a real-time signal has only a number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def how_ended(status: int) -> str:
    """Return text on how a process ended; ``status`` is its exit code, or minus a signal's number."""
    return f"by {signal_name(-status)}" if status < 0 else f"with exit code {status}"


def last_traceback(output: str) -> int:
    """Return the index of the last traceback in the output, or of the first that it was chained from; -1 for none."""
    start = output.rfind(TRACEBACK)
    before = output[: max(start, 0)].rstrip()
    while before.endswith(_CHAINED) and TRACEBACK in before:
        start = before.rindex(TRACEBACK)
        before = output[:start].rstrip()
    return start


class Failure(NamedTuple):
    """The reason why a job failed or was stopped; the same on every host."""

    host: str
    process: str
    exit_code: int
    #: The text of the failure file.
    message: str
    #: Whether the job was stopped from outside: processes then have the platform's grace period to end by themselves.
    graceful: bool = False
    #: The name of the signal that ended the process; "" for an exit code.
    signal: str = ""
    #: The type of the last exception whose traceback the process wrote; "" without a traceback.
    exception: str = ""
    #: One line of advice, or "".
    hint: str = ""
    #: The end of the process's output: its last traceback, with those that led to it, else its last lines.
    traceback: str = ""
