"""The agent's children: it wakes when one ends, and has its slow work done by one that can be killed."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scriptmode.errors import ScriptmodeError
from scriptmode.platforms.local.system import process_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import FrameType


class Children:
    """Waits for the ends of children. One per process: it owns the handlers of SIGCHLD and SIGTERM."""

    def __init__(self) -> None:
        self.terminated = False
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGTERM, self._terminate)
        for number in (signal.SIGINT, signal.SIGHUP):
            # A terminal's own: the job outlives it. The handler is not SIG_IGN because hosts would inherit that.
            signal.signal(number, lambda _number, _frame: None)
        process_tree.become_subreaper()

    def _terminate(self, _number: int, _frame: FrameType | None) -> None:
        self.terminated = True

    def wait(self, seconds: float) -> None:
        """Return when a child ended or a signal came, after ``seconds`` at the latest."""
        select.select([self._wake], [], [], max(0.0, seconds))
        with suppress(BlockingIOError):
            while os.read(self._wake, 512):
                pass

    def reap_strays(self, awaited: Collection[int]) -> None:
        """Reap the ended orphans this process took over, never one of ``awaited``: their status is their owner's."""
        with suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if ended.si_pid in awaited:
                    return
                os.waitpid(ended.si_pid, 0)

    def kill_all(self) -> bool:
        """End everything below this process; False when something would not go."""
        own = os.getpid()
        return process_tree.kill_until_gone(lambda: process_tree.descendants(own), lambda: self.reap_strays(()))


class ForkedTask:
    """One piece of slow work in a forked child: it can be killed at any time, and its memory goes with it.

    The process that forks must have no threads, and keeps its descriptor ``lock`` to itself. ``work`` returns what JSON
    can carry; a `ScriptmodeError` or an ``OSError`` becomes ``error``, anything else a traceback in the log and an
    ``error`` that says so. With ``stays`` the child keeps what it has open after it answered, until it is killed.
    """

    def __init__(self, work: Callable[[], Any], lock: int, *, stays: bool = False) -> None:
        self.value: Any = None
        self.error = ""
        self._pipe, theirs = os.pipe()
        self._answer = bytearray()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(lock)
            _work(work, theirs, parent, stays=stays)
        os.close(theirs)
        os.set_blocking(self._pipe, False)

    def poll(self) -> bool:
        """Say whether the work ended; ``value`` and ``error`` are set then."""
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
            # Its end of the pipe closes as it ends.
            _, status = os.waitpid(self.pid, 0)
            self.error = f"the process that did it ended with {describe_exit_code(os.waitstatus_to_exitcode(status))}"
        return True

    def kill(self) -> None:
        """End the work now."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def describe_exit_code(code: int) -> str:
    """Say an exit code as people do: ``exit code 3``, ``SIGKILL``."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def reset_signal_handlers(instead: signal.Handlers) -> None:
    """In a forked child of a process with `Children`, let the signals that those handle do this ``instead``."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, instead)


def _work(work: Callable[[], Any], pipe: int, parent: int, *, stays: bool) -> None:
    """Be the child: never returns."""
    status = 1
    try:
        process_tree.die_with_parent()
        reset_signal_handlers(signal.SIG_DFL)
        if os.getppid() != parent:
            os._exit(status)
        try:
            answer = {"value": work()}
        except (ScriptmodeError, OSError) as error:
            answer = {"error": str(error) or type(error).__name__}
        except Exception as error:  # noqa: BLE001 - told like any other; what is kept open must not look finished
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}; the traceback is in agent.log"}
        with os.fdopen(pipe, "w", encoding="utf-8") as file:
            json.dump(answer, file)
        while stays:
            signal.pause()
        status = 0
    except BaseException:  # noqa: BLE001 - the copy of the parent's stack above this frame must not go on
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
