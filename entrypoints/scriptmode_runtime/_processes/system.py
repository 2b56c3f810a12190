"""Linux system calls that Python does not wrap. On other systems they do nothing."""

from __future__ import annotations

import os
from contextlib import suppress

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_SIGKILL = 9
_file_limits: tuple[int, int] | None = None


def die_with_parent() -> None:
    """Set the kernel to kill this process when the thread that started it ends; it stays set after exec."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def adopt_orphans() -> None:
    """Set this process as the parent of all descendants whose own parent ended, like process 1: it can reap them."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def raise_file_limit(count: int) -> None:
    """Raise the limit of open files to ``count``, or to the hard limit; child processes keep the original limit."""
    global _file_limits  # noqa: PLW0603 - a property of the process
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        _file_limits = _file_limits or (soft, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


def restore_limits() -> None:
    """Restore the original limit of open files, in a process before exec."""
    if _file_limits:
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, _file_limits)


def end_by_signal(number: int) -> None:
    """Stop this process by the signal that ended its child; only the child dumps core."""
    import resource
    import signal

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
    os.kill(os.getpid(), number)


def call(name: str, *arguments: int | bytes) -> int:
    """Run a function of the C library, and return its result; raise ``OSError`` where it fails or is missing."""
    try:
        import ctypes

        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (ImportError, AttributeError) as error:  # a Python without ctypes, a C library without the function
        raise OSError(0, f"Python cannot call {name}()") from error
    passed = (ctypes.c_ulong(argument) if isinstance(argument, int) else argument for argument in arguments)
    if (result := int(function(*passed))) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _prctl(option: int, value: int) -> None:
    with suppress(OSError):
        call("prctl", option, value, 0, 0, 0)
