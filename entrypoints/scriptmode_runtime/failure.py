"""The failure of a job as a value. Pure."""

from __future__ import annotations

import signal
from typing import NamedTuple

#: Exit code of a failure outside the user's program: before its start, a lost host, a service that ended early.
LAUNCHER_FAILED = 1
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


class Failure(NamedTuple):
    """The reason why a job failed or was stopped; the same on every host."""

    host: str
    process: str
    exit_code: int
    #: The text of the failure file.
    message: str
    #: Whether the job was stopped from outside: processes then have the platform's grace period to end by themselves.
    graceful: bool = False
