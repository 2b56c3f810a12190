"""The state of every process of a host, and the stacks of the threads of Python processes.

Python processes answer where they were started with the directory ``traceable`` on their ``PYTHONPATH``.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from scriptmode_runtime import contract
from scriptmode_runtime._processes import proc, process_tree

VARIABLE = "SCRIPTMODE_STACKS"
#: The first signal is ignored by default: it does not end a process that just executes another program. The second one,
#: for a process in native code, is a real-time signal that neither Open MPI nor TensorFlow uses.
_SIGNAL, _NATIVE_SIGNAL = signal.SIGURG, signal.SIGRTMAX - 3
_TRACEABLE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "traceable")
_STOPPED, _RUNNING = "T", ("R", "S")
_STATES = {
    _STOPPED: "stopped by a signal",
    "t": "stopped by a debugger",
    "D": "waits for a disk or a network file system",
}
#: Seconds for processes to write their stacks; in native code they write at once.
ANSWER_SECONDS, _NATIVE_SECONDS = 1.0, 0.3
#: Processes of the runtime, which are left out.
_OWN = frozenset({"scriptmode_runtime.rank", "rsh.py"})
#: Seconds between two removals of the files of ended processes: a script may start thousands of short ones.
_REMOVAL_SECONDS = 5.0
_SHOWN_WORDS = 4
_HARMLESS = ("-m", "-u")


class ProcessReport(NamedTuple):
    """The state of one process."""

    #: Its task, its id and an unusual state.
    title: str
    #: The title with its command and its stacks.
    text: str
    stopped: bool
    #: The innermost line of the script's own files that its main thread is at; "" where unknown.
    line: str = ""


def stack_variables(folder: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which Python processes answer; they write their stacks to files in ``folder``."""
    path = os.pathsep.join(filter(None, (_TRACEABLE, environ.get("PYTHONPATH", ""))))
    return {VARIABLE: f"{int(_SIGNAL)}:{int(_NATIVE_SIGNAL)}:{folder}", "PYTHONPATH": path}


def request_stacks(folder: str) -> dict[int, int]:
    """Signal every descendant of this process to write its stacks; return the length of its file before, by its id.

    The length is -1 for a process that cannot answer.
    """
    requests = {}
    for pid in process_tree.descendants(os.getpid()):
        # The command line of mpirun has their names at later positions.
        if _OWN & set(map(os.path.basename, proc.command_line(pid)[1:3])):
            continue
        requests[pid] = _length(folder, pid) if proc.has_handler(pid, _NATIVE_SIGNAL) else -1
        if requests[pid] >= 0:
            with suppress(OSError):  # it has ended
                os.kill(pid, _SIGNAL)
    return requests


def _length(folder: str, pid: int) -> int:
    """Return the length of a process's file; -1 where the process has not opened it, or has closed it."""
    with suppress(OSError):
        file = os.stat(os.path.join(folder, str(pid)))
        for number in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):  # it has been closed
                if os.path.samestat(os.stat(f"/proc/{pid}/fd/{number}"), file):
                    return file.st_size
    return -1


def read_stacks(folder: str, requests: Mapping[int, int]) -> Iterator[ProcessReport]:
    """Yield a report of each process that has not ended; signal those that are in native code, and wait for them."""
    asked = [pid for pid, length in requests.items() if length >= 0 and proc.has_handler(pid, _NATIVE_SIGNAL)]
    silent = [pid for pid in asked if _length(folder, pid) == requests[pid] and proc.state(pid) in _RUNNING]
    for pid in silent:
        with suppress(OSError):  # it has ended
            os.kill(pid, _NATIVE_SIGNAL)
    process_tree.wait_until(lambda: all(_length(folder, pid) > requests[pid] for pid in silent), _NATIVE_SECONDS)
    for pid, length in requests.items():
        words = proc.command_line(pid)
        if not words:
            continue
        state = proc.state(pid)
        stacks = proc.read_text(os.path.join(folder, str(pid)))[length:].strip() if length >= 0 else ""
        note = _STATES.get(state) or ("" if stacks else "shows no Python stack")
        title = ", ".join(filter(None, (_task(pid), f"process {pid}", note)))
        text = f"{title}: {' '.join(_program(words))}" + (f"\n{stacks}" if stacks else "")
        yield ProcessReport(title, text, state == _STOPPED, _script_line(pid, stacks))


def _script_line(pid: int, stacks: str) -> str:
    """Return where the main thread, which the signal interrupted, is in the working directory, without packages."""
    with suppress(OSError):
        folder = re.escape(os.readlink(f"/proc/{pid}/cwd"))
        main = stacks.partition("\nThread 0x")[0]
        package = r'(?:[^"]*/)?(?:site|dist)-packages/'
        if match := re.search(rf'File "(?:{folder}/)?(?!{package})([^/<"][^"]*)", line (\d+) in (\S+)', main):
            return "{}, line {}, in {}".format(*match.groups())
    return ""


class StackRequests:
    """Ticker that answers the platform's requests, files in the host's directory, with the stacks of all processes."""

    def __init__(self, base_dir: str, folder: str, clock: Callable[[], float], redact: Callable[[str], str]) -> None:
        self._request = os.path.join(base_dir, contract.STACKS_REQUEST)
        self._answer = os.path.join(base_dir, contract.STACKS_ANSWER)
        self._folder = folder
        self._clock = clock
        self._redact = redact
        self._due = self._removal = clock()
        self._requests: dict[int, int] | None = None

    def deadline(self) -> float | None:
        """Return when to look for a request, or to answer one."""
        return self._due

    def tick(self) -> None:
        """Signal the processes if there is a request; a moment later, write their answers and remove the request."""
        if self._clock() < self._due:
            return
        self._due = self._clock() + ANSWER_SECONDS
        if self._clock() >= self._removal:
            self._removal = self._clock() + _REMOVAL_SECONDS
            # Those of processes that have ended.
            with suppress(OSError):
                pids = filter(str.isdigit, os.listdir(self._folder) if proc.has_processes() else ())
                _unlink(*(os.path.join(self._folder, pid) for pid in pids if not os.path.exists(f"/proc/{pid}")))
        if self._requests is None:
            self._requests = request_stacks(self._folder) if os.path.exists(self._request) else None
            return
        text = "\n".join(report.text for report in read_stacks(self._folder, self._requests))
        self._requests = None
        draft = f"{self._answer}.new"
        # An earlier answer would pass for one that cannot be written.
        _unlink(draft, self._answer)
        with suppress(OSError):
            with open(draft, "x", encoding="utf-8", errors="replace") as file:
                file.write(self._redact(text))
            os.replace(draft, self._answer)
        _unlink(self._request)


def _unlink(*paths: str) -> None:
    for path in paths:
        with suppress(OSError):
            os.unlink(path)


def _program(words: list[str]) -> list[str]:
    """Return a command line without its options, whose values may be secrets."""
    options = [at for at, word in enumerate(words) if word.startswith("-") and word not in _HARMLESS]
    return words[: min([*options, _SHOWN_WORDS])]


def _task(pid: int) -> str:
    """Return the task of a process, such as ``rank 3`` or ``worker 0``, from its variables; "" for none."""
    environ = proc.environ(pid)
    if contract.RANK_VARIABLE in environ:
        return f"rank {environ[contract.RANK_VARIABLE]}"
    try:
        task = json.loads(environ["TF_CONFIG"])["task"]
        return f"{task['type']} {task['index']}"
    except (KeyError, ValueError, TypeError):
        return ""
