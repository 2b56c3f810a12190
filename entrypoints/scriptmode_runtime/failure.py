"""How a job ended before its time, as a value. Pure."""

from __future__ import annotations

import signal
from typing import NamedTuple

#: Exit code where no program of the user's failed: something before it, a lost host, a service that ended early.
LAUNCHER_FAILED = 1
#: A process ended by signal n counts as ended with this much more (POSIX shells).
SIGNALLED = 128


def signal_name(number: int) -> str:
    """Give a signal's name; real-time signals have none of their own and are called by number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def how_ended(status: int) -> str:
    """Say how a process ended, by its exit code or minus a signal's number."""
    return f"by {signal_name(-status)}" if status < 0 else f"with exit code {status}"


class Failure(NamedTuple):
    """Why a job ended before its time; the same on every host."""

    host: str
    process: str
    exit_code: int
    #: As the failure file shows it.
    message: str
    #: A stop from outside: processes get the platform's grace to end by themselves.
    graceful: bool = False
