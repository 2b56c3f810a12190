"""A training host that is a process of this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode_local._data import regular_files
from scriptmode_local._hosts.host_identity import describe_missing_names, describe_refusal
from scriptmode_local._store import agent_log
from scriptmode_runtime._processes import forks, namespace, process_tree, system

if TYPE_CHECKING:
    from scriptmode._core.text.messages import Problem


class ProcessHost:
    """``train`` as a process in its own session, which writes to ``log`` itself; the kernel kills it with the agent.

    ``base`` is the directory that is the host's ``/opt/ml``, and ``hosts_file`` the file that is its ``/etc/hosts``.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], log: Path, base: Path, hosts_file: Path) -> None:
        """Start the process, with its own ``/opt/ml`` where the machine allows that; raise ``OSError``."""
        agent = os.getpid()
        reading, writing = os.pipe()

        def enter_namespace() -> None:
            try:
                refusal, is_own = namespace.enter(str(base), str(hosts_file)), True
            except namespace.NamespaceError as error:
                refusal, is_own = error.refusal, False
            os.write(writing, json.dumps((refusal, is_own)).encode())
            # After the namespace: a change of the user's capabilities cancels it.
            system.die_with_parent()
            if os.getppid() != agent:
                os._exit(1)

        try:
            self._process = _spawn(argv, env, log, enter_namespace)
        finally:
            os.close(writing)
            with os.fdopen(reading, "rb") as file:
                report = file.read()
        self.pid = self._process.pid
        #: Why the host has no ``/opt/ml`` of its own; None where it has.
        self.refusal: Problem | None = None
        refusal, is_own = json.loads(report) if report else (None, True)  # killed before, as its exit code tells
        if refusal:
            problem = (describe_missing_names if is_own else describe_refusal)(namespace.Refusal(*refusal))
            self.refusal = None if is_own else problem
            agent_log.append_line(log, f"scriptmode: warning: {problem}")

    def poll(self) -> int | None:
        """Return the exit code once the process ended, ``-n`` for signal n, else None."""
        return self._process.poll()

    def signal(self, number: int) -> None:
        """Send a signal to the process, SIGKILL to all its descendants, too."""
        if self._process.poll() is None:
            if number == signal.SIGKILL:
                process_tree.kill_tree(self.pid)
            else:
                self._process.send_signal(number)


def _spawn(
    argv: Sequence[str], env: Mapping[str, str], log: Path, before_exec: Callable[[], None]
) -> subprocess.Popen[bytes]:
    with regular_files.open_to_append(log) as output:
        return forks.popen(
            argv,
            before_exec,
            env=env,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


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
