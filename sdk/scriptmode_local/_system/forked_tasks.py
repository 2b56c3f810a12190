"""The agent's children: waiting for their ends, and slow work in a forked child that can be killed."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from scriptmode.errors import ScriptmodeError
from scriptmode_local._data.shared_counters import create_counters
from scriptmode_runtime._processes import forks, proc, process_tree, system
from scriptmode_runtime._values.failure import describe_exit_code

if TYPE_CHECKING:
    from types import FrameType

#: Seconds between two heartbeats of a task; without one after which it hangs if it is stopped or has to answer soon;
#: and after which any does, as it may wait for a disk.
_BEAT_SECONDS, SILENT_SECONDS, _LONGEST_SILENCE = 1.0, 60.0, 900.0
#: Time between two looks that counts as silence at most: a process that was stopped itself has to look first.
_LONGEST_LOOK_SECONDS = 1.0


class Children:
    """Waiting for the ends of children. One for each process: it owns the handlers of its signals."""

    def __init__(self) -> None:
        #: Whether something ends this process, and whether the job's user asked for that.
        self.terminated = self.is_asked_to_stop = False
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        # SIGUSR1 is the notice of a scheduler that it will end the job: sbatch --signal=B:USR1@60. SIGUSR2 is a request
        # to stop where the job's folder cannot be written.
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, self._on_end)
        for number in (signal.SIGINT, signal.SIGHUP):
            # Signals of a terminal, which the job outlives. The handler is not SIG_IGN, which hosts would inherit.
            signal.signal(number, lambda _number, _frame: None)
        system.adopt_orphans()

    def _on_end(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGUSR2:
            self.is_asked_to_stop = True
        else:
            self.terminated = True

    def wait(self, seconds: float, readable: Collection[int] = ()) -> None:
        """Return when a child ended, a signal came or one of ``readable`` can be read, or ``seconds`` have passed."""
        # select(2) refuses descriptors above 1023, and each host takes some.
        readers = select.poll()
        for descriptor in (self._wake, *readable):
            readers.register(descriptor, select.POLLIN)
        readers.poll(max(0.0, seconds) * 1000)
        with suppress(BlockingIOError):
            while os.read(self._wake, 512):
                pass

    def reap_strays(self, awaited: Collection[int]) -> None:
        """Reap ended orphans that this process adopted, but none of ``awaited``, whose status their owner reads."""
        with suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if ended.si_pid in awaited:
                    return
                os.waitpid(ended.si_pid, 0)

    def kill_all(self) -> bool:
        """Kill all descendants of this process; return whether all ended."""
        own = os.getpid()
        return process_tree.kill_until_gone(lambda: process_tree.descendants(own), lambda: self.reap_strays(()))


class Tasks:
    """The forks of a process that has private descriptors, such as that of a lock: no child inherits them."""

    def __init__(self, *private: int) -> None:
        self._private = set(private)
        self._running: list[ForkedTask] = []
        self._watched = time.monotonic()

    @property
    def pids(self) -> list[int]:
        """The process IDs of the tasks that run."""
        return [task.pid for task in self._running]

    def keep_private(self, *descriptors: int) -> None:
        """Close these descriptors, too, in every child that is forked from now on."""
        self._private.update(descriptors)

    def open_listener(self, address: str) -> socket.socket:
        """Open a port at all addresses of this machine, IPv6 if ``address`` is; no child has it. Raises ``OSError``.

        The caller keeps it as long as it forks.
        """
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.create_server(("", 0), family=family, backlog=4)
        self.keep_private(listener.fileno())
        return listener

    def start(self, work: Callable[[], Any], name: str, *, stays: bool = False, is_endless: bool = False) -> ForkedTask:
        """Start ``work`` in a forked child; it returns a value that JSON can represent.

        A `ScriptmodeError` or an ``OSError`` becomes ``error``; any other exception becomes a traceback in the log and
        an ``error`` that names it. With ``stays`` the child keeps its descriptors open after ``work`` returned, until
        it is killed. ``name`` is for messages; the end of an ``is_endless`` one is known by `watch` alone.
        """
        task = ForkedTask(self, work, name, stays=stays, is_endless=is_endless)
        self._running.append(task)
        return task

    def watch(self) -> list[str]:
        """Kill the tasks that hang; return a sentence for each endless one that has ended."""
        now = time.monotonic()
        passed, self._watched = min(now - self._watched, _LONGEST_LOOK_SECONDS), now
        ended = [task for task in self._running if task.has_ended(passed)]
        self._running = [task for task in self._running if task not in ended]
        return [f"{task.name} has ended: {task.error}" for task in ended if task.is_endless and task.error]

    def fork(self) -> int:
        """Create a child process as `forks.fork`."""
        pid = forks.fork()
        if pid == 0:
            self._running.clear()
            while self._private:
                os.close(self._private.pop())
        return pid


class ForkedTask:
    """Background work in a forked child: it can be killed at any time, and its memory is freed at its end."""

    def __init__(
        self, tasks: Tasks, work: Callable[[], Any], name: str, *, stays: bool = False, is_endless: bool = False
    ) -> None:
        self.name, self.is_endless = name, is_endless
        #: Seconds without a heartbeat after which the child hangs.
        self.longest_silence = _LONGEST_SILENCE
        self._beats = create_counters(1)
        self._seen, self._silence, self._hung = 0, 0.0, ""
        self.value: Any = None
        self.error = ""
        #: Whether the child ended without an answer.
        self.was_killed = False
        self._pipe, theirs = os.pipe()
        self._answer = bytearray()
        parent = os.getpid()
        self.pid = tasks.fork()
        if self.pid == 0:
            _run_child(parent, partial(_work, work, theirs, self._beats, stays=stays))
        os.close(theirs)
        os.set_blocking(self._pipe, False)

    def poll(self) -> bool:
        """Return whether the work ended; ``value`` and ``error`` are set then. Never blocks."""
        if self._pipe < 0:
            return True
        try:
            while chunk := os.read(self._pipe, 65536):
                self._answer += chunk
        except BlockingIOError:
            return False
        os.close(self._pipe)
        self._pipe = -1
        if self._answer:
            answer = json.loads(self._answer)
            self.value, self.error = answer.get("value"), answer.get("error", "")
        else:
            # The child's end of the pipe was closed by its end.
            _, status = os.waitpid(self.pid, 0)
            self.was_killed = True
            code = describe_exit_code(os.waitstatus_to_exitcode(status))
            self.error = self._hung or f"the process that did it ended with {code}"
        return True

    def has_ended(self, passed: float) -> bool:
        """Return whether the child has ended; kill one that hangs. ``passed``: seconds since the last call."""
        try:
            if self.poll():
                return True
        except ChildProcessError:
            return True
        beats = self._beats[0]
        self._seen, self._silence = beats, self._silence + passed if beats == self._seen else 0.0
        is_stopped = self._silence > SILENT_SECONDS and proc.state(self.pid) == "T"
        limit = SILENT_SECONDS if is_stopped else self.longest_silence
        if self._silence > limit and not self._hung:
            what = "was stopped" if is_stopped else "has not answered"
            self._hung = f"{self.name} (process {self.pid}) {what} for {limit:g} s, and was killed"
            self.kill()
        return False

    def kill(self) -> None:
        """Kill the child now."""
        process_tree.kill_all([self.pid])


def reset_signal_handlers(instead: signal.Handlers) -> None:
    """Set the signals that `Children` handles to ``instead``, in a forked child."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, instead)


class ForkedProcess:
    """A forked child that runs ``serve`` and ends with it; the kernel kills it with this process."""

    def __init__(self, tasks: Tasks, serve: Callable[[], None]) -> None:
        self._code: int | None = None
        parent = os.getpid()
        self.pid = tasks.fork()
        if self.pid == 0:
            _run_child(parent, serve)

    def poll(self) -> int | None:
        """Return the exit code once the child ended, ``-n`` for signal n, else None; never block."""
        if self._code is None:
            try:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                # `Children.kill_all` killed and reaped it.
                self._code = -signal.SIGKILL
            else:
                self._code = os.waitstatus_to_exitcode(status) if ended else None
        return self._code

    def kill(self) -> None:
        """Kill the child now."""
        if self.poll() is None:
            process_tree.kill_all([self.pid])


def _run_child(parent: int, run: Callable[[], None]) -> None:
    """Call ``run`` in a forked child, then end it; never return."""
    status = 1
    try:
        system.die_with_parent()
        reset_signal_handlers(signal.SIG_DFL)
        if os.getppid() != parent:
            os._exit(status)
        run()
        status = 0
    except BaseException:  # noqa: BLE001 - the parent's code above this frame must not continue in the child
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _work(work: Callable[[], Any], pipe: int, beats: memoryview, *, stays: bool) -> None:
    def beat(*_: object) -> None:
        beats[0] += 1

    # The main thread runs it, unless it hangs in a system call or in a library.
    signal.signal(signal.SIGALRM, beat)
    signal.setitimer(signal.ITIMER_REAL, _BEAT_SECONDS, _BEAT_SECONDS)
    try:
        answer = {"value": work()}
    except (ScriptmodeError, OSError) as error:
        answer = {"error": str(error) or type(error).__name__}
    except Exception as error:  # noqa: BLE001 - reported like other errors; with ``stays`` the child must not look finished
        traceback.print_exc()
        answer = {"error": f"{type(error).__name__}: {error}; the traceback is in agent.log"}
    with os.fdopen(pipe, "w", encoding="utf-8") as file:
        json.dump(answer, file)
    while stays:
        signal.pause()
