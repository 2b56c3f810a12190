"""A process that has imported a module, and forks for each call of its ``main``: nothing is imported again.

``python -m scriptmode_local._system.fork_server <module> <imports>...`` has a socket of `ForkServer` as its
standard input. A byte with three descriptors comes for each call: a socket of this call, the held lock of the job, and
its log. Over the call's socket come the job's folder and the environment, and back a byte from the fork server or from
the fork: it runs. The fork has a session of its own, and lives on when its fork server ends, as that does with the
process that started it.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from threading import RLock

from scriptmode_runtime._processes import forks


class ForkServer:
    """The fork server of a process that may have threads; it is started when it is needed, and again if it ended."""

    def __init__(self, module: str, *imports: str) -> None:
        """Import ``module``, whose ``main`` is called, and ``imports``, which it would import then."""
        self.module, self._imports = module, imports
        self._lock = RLock()
        self._calls: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> socket.socket:
        """Start the process unless it runs; return the socket of its calls."""
        if self._calls is None or self._process is None or self._process.poll() is not None:
            self.close()
            self._calls, theirs = socket.socketpair()
            argv = (sys.executable, "-m", "scriptmode_local._system.fork_server", self.module, *self._imports)
            with theirs:
                self._process = subprocess.Popen(
                    argv, cwd="/", stdin=theirs.fileno(), stdout=subprocess.DEVNULL, start_new_session=True
                )
        return self._calls

    def close(self) -> None:
        """End the process; its forks live on."""
        with self._lock:
            if self._calls and self._process:
                self._calls.close()
                self._process.kill()
                self._process.wait()

    def call(self, folder: str, lock: int, log: int, seconds: float) -> bool:
        """Call ``main`` in a fork with this environment, a folder and a lock; return whether the fork runs.

        False if the fork server ended before. Raises ``OSError`` where there is no answer in time.
        """
        ours, theirs = socket.socketpair()
        with ours:
            ours.settimeout(seconds)
            try:
                with theirs, self._lock:
                    socket.send_fds(self.start(), [b"."], [theirs.fileno(), lock, log])
                ours.sendall(json.dumps([folder, dict(os.environ)]).encode())
                ours.shutdown(socket.SHUT_WR)
                return ours.recv(1) != b""
            except (BrokenPipeError, ConnectionResetError):
                return False
            except OSError:
                # It hangs: the next call has another one.
                self.close()
                raise


def _serve(module: str, *imports: str) -> int:
    forks.restart_without_threads("scriptmode_local._system.fork_server")
    main = import_module(module).main
    for name in imports:
        import_module(name)
    # The kernel reaps the forks.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # The collector would write to what the forks share.
    gc.freeze()
    calls = socket.socket(fileno=0)
    while descriptors := socket.recv_fds(calls, 1, 3)[1]:
        # A caller whose socket is closed without an answer knows that there is no fork.
        with suppress(OSError, ValueError):
            call, _, _ = descriptors  # some are lost at the limit of descriptors
            if forks.fork() == 0:
                calls.detach()
                break
            os.write(call, b".")
        for descriptor in descriptors:
            os.close(descriptor)
    return _run(main, *descriptors) if descriptors else 0


def _run(main: Callable[[list[str]], int], call: int, lock: int, log: int) -> int:
    os.setsid()
    # No process of the job is below its server, which its user may end with all below it.
    if forks.fork():
        os._exit(0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, stream in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, stream)
    os.close(null)
    os.close(log)
    with socket.socket(fileno=call) as caller:
        with caller.makefile("rb") as request:
            folder, environment = json.load(request)
        os.environ.clear()
        os.environ.update(environment)
        # The fork server may have been killed before it answered.
        with suppress(OSError):
            caller.sendall(b".")
    return main([folder, str(lock)])


if __name__ == "__main__":
    sys.exit(_serve(*sys.argv[1:]))
