"""A training host that is a process of this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode_local._data import regular_files
from scriptmode_local._hosts.host_identity import describe_missing_names, describe_refusal
from scriptmode_local._store import agent_log
from scriptmode_runtime._processes import forks, namespace, process_tree, system

if TYPE_CHECKING:
    from scriptmode._core.text.messages import Problem


@dataclass
class ProcessHost:
    """``train`` as a process in its own session, which writes to ``log`` itself; the kernel kills it with the agent."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    log: Path
    #: The directory that is the host's ``/opt/ml``, and the file that is its ``/etc/hosts``.
    base: Path
    hosts_file: Path
    #: Why the host has no ``/opt/ml`` of its own, once it is started; None where it has.
    refusal: Problem | None = field(default=None, init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False, repr=False)

    @property
    def pid(self) -> int:
        """The process ID; 0 before the start."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start the process, with its own ``/opt/ml`` where the machine allows that; raise ``OSError``."""
        agent = os.getpid()
        reading, writing = os.pipe()

        def enter_namespace() -> None:
            try:
                refusal, is_own = namespace.enter(str(self.base), str(self.hosts_file)), True
            except namespace.NamespaceError as error:
                refusal, is_own = error.refusal, False
            os.write(writing, json.dumps((refusal, is_own)).encode())
            # After the namespace: a change of the user's capabilities cancels it.
            system.die_with_parent()
            if os.getppid() != agent:
                os._exit(1)

        try:
            self._spawn(enter_namespace)
        finally:
            os.close(writing)
            with os.fdopen(reading, "rb") as file:
                report = file.read()
        refusal, is_own = json.loads(report) if report else (None, True)  # killed before, as its exit code tells
        if refusal:
            problem = (describe_missing_names if is_own else describe_refusal)(namespace.Refusal(*refusal))
            self.refusal = None if is_own else problem
            agent_log.append_line(self.log, f"scriptmode: warning: {problem}")

    def _spawn(self, before_exec: Callable[[], None]) -> None:
        with regular_files.open_to_append(self.log) as log:
            self._process = forks.popen(
                self.argv,
                before_exec,
                env=self.env,
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def poll(self) -> int | None:
        """Return the exit code once the process ended, ``-n`` for signal n, else None."""
        return self._process.poll() if self._process else None

    def signal(self, number: int) -> None:
        """Send a signal to the process, SIGKILL to all its descendants, too."""
        if self._process and self._process.poll() is None:
            if number == signal.SIGKILL:
                process_tree.kill_tree(self._process.pid)
            else:
                self._process.send_signal(number)


def run_to_end(argv: Sequence[str], *, env: Mapping[str, str], cwd: str, log: Path) -> int:
    """Run a program that writes to ``log``; return its exit code, ``-n`` for signal n. Raises ``OSError``.

    The processes of its group end with it, and with an exception in this thread.
    """
    with regular_files.open_to_append(log) as output:
        process = subprocess.Popen(
            argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    try:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    finally:
        process_tree.stop_group(process)
    return process.returncode
