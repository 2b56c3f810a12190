"""Child processes: started in sessions of their own, signalled by group, reaped."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from scriptmode_runtime import contract
from scriptmode_runtime._processes import forks, proc, process_tree, system
from scriptmode_runtime._values.errors import UserCodeError
from scriptmode_runtime.plan import STOP_RANKS, File, ProcessSpec

if TYPE_CHECKING:
    from scriptmode_runtime._processes.streams import Source

#: Roles of a child: its end ends the plan; it outlives the trainers, or may; it belongs to a trainer on another host.
TRAINER, SERVICE, OPTIONAL, DAEMON = "trainer", "service", "optional", "daemon"
#: Signals that Python ignores for itself and a program expects at their default.
_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)
#: Programs in the log's line on orphaned processes, and characters of a name.
_MOST_NAMES, _LONGEST_NAME = 8, 60


class Child:
    """One started process: its plan, its output and its exit status (None as long as it runs)."""

    def __init__(self, spec: ProcessSpec, role: str, pid: int, source: Source, on_end: Callable[[int], None]) -> None:
        self.spec = spec
        self.role = role
        self.pid = pid
        self.source = source
        #: Called with its exit status once it ended.
        self.on_end = on_end
        self.status: int | None = None

    @property
    def running(self) -> bool:
        """Whether the process has not been reaped yet."""
        return self.status is None

    def signal(self, number: int) -> None:
        """Send a signal to the process groups that the plan names; ignore those that have ended."""
        if self.spec.stop == STOP_RANKS and number != signal.SIGKILL:
            started = mpi_ranks(self.pid)
            for rank in started:
                _signal_rank(rank, number, starter=self.pid)
            if started:
                return
        process_tree.signal_group(self.pid, number)

    def kill(self) -> None:
        """Kill the process and all below it."""
        below = process_tree.descendants(self.pid)
        process_tree.signal_group(self.pid, signal.SIGKILL)
        process_tree.kill_all(below)


def mpi_ranks(starter: int) -> list[int]:
    """Return the MPI ranks that ``mpirun`` or one of its daemons started.

    Its other children connect it to other hosts, and are needed until the ranks have ended.
    """
    return [pid for pid in process_tree.children(starter) if contract.RANK_VARIABLE in proc.environ(pid)]


def start(spec: ProcessSpec) -> tuple[int, int]:
    """Start a process in a session of its own; return its process id and the reading end of its output.

    Its stdout and stderr are one pipe, so their order is kept. Raises `UserCodeError` when it cannot be started.
    """
    reading, writing = os.pipe()
    report, reporting = os.pipe()
    parent = os.getpid()
    if sys.stdout:  # None where the parent process closed it
        sys.stdout.flush()
    # No signal between fork and exec: this process's handlers would run in the child.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = forks.fork()
        if pid == 0:
            _exec(spec, writing, reporting, parent)
    except OSError as error:
        os.close(reading)
        os.close(report)
        raise UserCodeError(
            f"{spec.name} cannot be started: {error.strerror}; free memory or processes on this host"
        ) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(writing)
        os.close(reporting)
    with os.fdopen(report, "rb") as file:
        problem = file.read().decode("utf-8", "replace")
    if problem:
        os.close(reading)
        os.waitpid(pid, 0)
        raise UserCodeError(f"{spec.name} cannot be started: {problem}")
    return pid, reading


def write_files(files: Iterable[File]) -> None:
    """Write files for processes; raises `UserCodeError`."""
    name = ""
    try:
        for name, content, mode in files:
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(content)
    except OSError as error:
        raise UserCodeError(f"{name} cannot be written: {error.strerror}") from error


def restore_defaults() -> None:
    """Restore the signals and limits that Python and the launcher changed, in a process before exec."""
    for number in _RESTORED:
        signal.signal(number, signal.SIG_DFL)
    system.restore_limits()


def reap() -> dict[int, int]:
    """Reap all children that ended, adopted orphans included; return the exit status of each."""
    ended = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            ended[pid] = os.waitstatus_to_exitcode(status)
    return ended


def has_children() -> bool:
    """Return whether this process has children, orphans included; those that ended are left to `reap`."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def orphans() -> list[int]:
    """Reap the children that ended; return all descendants of this process, which are adopted orphans then."""
    reap()
    return process_tree.descendants(os.getpid()) if has_children() else []


def kill_orphans() -> bool:
    """Reap the children that ended, and kill all descendants of this process; return whether there were any."""
    process_tree.kill_all(orphans())
    return has_children()


def describe_killed(pids: Iterable[int]) -> str:
    """Return a line for the log on running processes that a program left and that are killed now; "" for none."""
    names = Counter(filter(None, map(_program_name, pids)))
    if not names:
        return ""
    shown = [f"{name} ({count})" if count > 1 else name for name, count in names.most_common(_MOST_NAMES)]
    more = ["..."] if len(names) > _MOST_NAMES else []
    head = "a process that was left running is" if sum(names.values()) == 1 else "processes that were left running are"
    return f"{head} killed: {', '.join(shown + more)}"


def _program_name(pid: int) -> str:
    """Return the name of a process's program, and of its script for Python; "" where it has ended. No arguments."""
    program, *words = [os.path.basename(word) for word in proc.command_line(pid)] or [""]
    is_script = program.startswith("python") and words and not words[0].startswith("-")
    text = f"{program} {words[0]}" if is_script else program
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:_LONGEST_NAME]


def _signal_rank(rank: int, number: int, starter: int) -> None:
    """Send a signal to a rank's group, or to the rank alone where that is the group of its starter."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        group = os.getpgid(rank)
        if group == starter:
            os.kill(rank, number)
        else:
            os.killpg(group, number)


def _exec(spec: ProcessSpec, writing: int, reporting: int, parent: int) -> None:
    """Replace the forked child with the process; report a failure through ``reporting``. Never returns."""
    path = spec.cwd
    try:
        os.setsid()
        system.die_with_parent()
        if os.getppid() != parent:
            os._exit(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(writing, 1)
        os.dup2(writing, 2)
        os.chdir(spec.cwd)
        signal.set_wakeup_fd(-1)
        restore_defaults()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            if callable(signal.getsignal(number)):  # it would lose a stop that came meanwhile
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        path = spec.argv[0]
        os.execvpe(spec.argv[0], spec.argv, {**os.environ, **spec.env})  # noqa: S606 - never a shell
    except OSError as error:
        os.write(reporting, _reason(error, path).encode("utf-8", "replace"))
    except ValueError as error:
        os.write(reporting, str(error).encode("utf-8", "replace"))
    finally:
        os._exit(1)


def _reason(error: OSError, path: str) -> str:
    next_step = {
        errno.EACCES: "; it, or what its first line names, may not be executed here: its mode, or a noexec volume",
        errno.ENOENT: "; if it is there, what its first line names is not",
        errno.ENOEXEC: "; its first line must name its interpreter, such as #!/bin/sh",
        errno.E2BIG: "; the hyperparameters are too large for a process's arguments and variables",
    }
    return f"{path}: {error.strerror}{next_step.get(error.errno or 0, '')}"
