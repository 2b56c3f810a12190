"""One MPI rank: runs the user's program with the variables and the directory of the host that the rank belongs to.

It stays the program's parent, and reports a failure to the launcher before ``mpirun`` can: of several ranks that end at
almost the same time, because another rank has failed, ``mpirun`` names an arbitrary one.

States of a `Rank`, moved by signals::

    running --(the program ends)-----------------------------> ended
    running --(a stop that no process of it handles)---------> held --(released by the launcher)--> running, signalled
    running --(a stop that the program handles)--> stopping --(all its processes ended)--> held --(released)--> ended

A held rank has nothing more to save, but its end would make ``mpirun`` end ranks that are still saving. The launcher
releases all ranks at once, at the latest at the end of the grace period. A stop of ``mpirun`` itself is never held: its
processes are waited for during `_MPIRUN_GRACE`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from scriptmode_runtime import _environment as environment, _report as report, contract
from scriptmode_runtime._launch import user_code
from scriptmode_runtime._processes import children, forks, namespace, proc, process_tree, system
from scriptmode_runtime._processes.loop import HANDLED, STOPPING
from scriptmode_runtime._processes.process_tree import POLL_SECONDS, ProcessTree
from scriptmode_runtime._strategies.mpi import processes_per_host
from scriptmode_runtime._values.errors import RuntimeFailure

if TYPE_CHECKING:
    from scriptmode_runtime._values.cluster import Cluster

_VISIBLE_GPUS, _JAX_DEVICES = "CUDA_VISIBLE_DEVICES", "JAX_LOCAL_DEVICE_IDS"
_JAX_COORDINATOR, _JAX_BINDS = "JAX_COORDINATOR_ADDRESS", "JAX_COORDINATOR_BIND_ADDRESS"
#: JAX takes its processes from Open MPI's variables where this one is set (jax/_src/clusters/ompi_cluster.py).
#: ``mpirun`` of Open MPI 4 sets it and that of 5 does not; no library of 5 reads it.
_JAX_DETECTS = "OMPI_MCA_orte_hnp_uri"
#: With this variable of Open MPI 5's ``mpirun``, JAX 0.12 asks mpi4py instead. Only ``mpirun`` itself reads it.
_JAX_REQUIRES_MPI4PY = "OMPI_VERSION"
#: The exit code of a shell for a program that cannot be started.
_COMMAND_NOT_STARTED = 127
_FORWARDED = (*HANDLED, signal.SIGCONT)
#: Seconds to wait for the launcher to accept a message.
_SEND_TIMEOUT = 5.0
#: Seconds between ``mpirun``'s SIGTERM and SIGKILL to a rank (odls_base_sigkill_timeout).
_MPIRUN_GRACE = 1.0


def main() -> int:
    """Run the program, and end with its exit code or signal."""
    try:
        system.die_with_parent()
        system.adopt_orphans()
        here = _host()
        rank = Rank(here, os.environ.get(contract.LAUNCHER_VARIABLE, ""))
        status = rank.run()
    except (RuntimeFailure, OSError, ValueError, IndexError) as error:
        sys.stderr.write(f"scriptmode: {error}\n")
        return _COMMAND_NOT_STARTED
    # Processes that the program left hold the rank's output open, and mpirun waits for its end.
    left = children.orphans()
    if text := "" if status else children.describe_killed(left):
        sys.stderr.write(f"scriptmode: {text}\n")
        sys.stderr.flush()
    process_tree.kill_all(left)
    if status < 0:
        # Which mpirun reports.
        system.end_by_signal(-status)
    return status


class Rank:
    """One program and the connection to its launcher."""

    def __init__(self, here: environment.TrainingEnvironment, launcher: str) -> None:
        self._here = here
        self._launcher = launcher
        self._program = 0
        #: The program's exit code, or minus a signal's number; None as long as its first process runs.
        self._status: int | None = None
        #: All processes of the program, once it was signalled to stop.
        self._tree: ProcessTree | None = None
        self._stop_signal = 0
        #: The deadline for those processes; for a stop by the launcher the launcher has the deadline.
        self._wait_until = float("inf")
        #: A signal that the program does not handle, withheld from it as long as another rank may be saving.
        self._withheld_signal = 0
        self._stopped = False
        #: The connection that the launcher closes to release this rank, once it has saved.
        self._hold_connection: socket.socket | None = None

    def run(self) -> int:
        """Run the program to its end; return its exit code, or minus a signal's number."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (*_FORWARDED, signal.SIGCHLD))
        self._program = _start(self._here, before)
        while True:
            number, sender = _next_signal(POLL_SECONDS if self._hold_connection or self._status is not None else None)
            if number in _FORWARDED:
                self._on_signal(number, sender)
            ended = children.reap()
            if self._status is None and self._program in ended:
                self._status = ended[self._program]
                if self._status and not self._stopped:
                    self._report_failure(self._status)
            if self._hold_connection and _is_released(self._hold_connection):
                self._hold_connection = None
                self._forward(self._withheld_signal)
            if self._status is not None and not self._hold_connection and not self._is_program_alive():
                if not self._stopped:
                    return self._status
                self._stopped = False
                # This rank has saved its state; its end would make mpirun end the others.
                self._hold_connection = self._send(type="held")

    def _is_program_alive(self) -> bool:
        """Return whether the deadline is not over and processes are left of a program that was signalled to stop."""
        if self._tree is None or time.monotonic() >= self._wait_until or not self._tree.is_alive():
            return False
        self._tree.signal_orphans(self._stop_signal)
        return True

    def _on_signal(self, number: int, sender: int) -> None:
        """Forward a signal; hold this rank instead where the program does not handle a stop.

        The first rank to end would make ``mpirun`` end all others, which may be saving. Its own stops are not held.
        """
        if number not in STOPPING:
            self._forward(number)
            return
        self._tree, self._stop_signal = self._tree or ProcessTree(self._program), number
        if sender == os.getppid():
            self._wait_until = time.monotonic() + _MPIRUN_GRACE
            self._forward(number)
            return
        self._stopped = True
        if not any(proc.has_handler(pid, number) for pid in self._tree.pids()):
            self._withheld_signal = number
            self._hold_connection = self._send(type="held")
        if self._hold_connection is None:
            self._forward(number)

    def _forward(self, number: int) -> None:
        process_tree.signal_group(self._program, number)

    def _report_failure(self, status: int) -> None:
        """Report the program's failure to the launcher, if it can be reached."""
        rank = int(os.environ.get(contract.RANK_VARIABLE, "0"))
        own = report.create_redaction(self._here)(report.script_message(self._here, self._here.host))
        launcher = self._send(type="rank", host=self._here.host, rank=rank, status=status, own=own)
        if launcher:
            with launcher, contextlib.suppress(OSError):
                launcher.recv(1)  # the launcher closes the connection after it has read the message

    def _send(self, **message: object) -> socket.socket | None:
        launcher = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            launcher.settimeout(_SEND_TIMEOUT)
            launcher.connect(self._launcher)
            launcher.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            launcher.close()
            return None
        return launcher


def _next_signal(seconds: float | None) -> tuple[int, int]:
    """Wait for a signal; return its number and its sender, (0, 0) after ``seconds`` without one."""
    waited = (*_FORWARDED, signal.SIGCHLD)
    info = signal.sigwaitinfo(waited) if seconds is None else signal.sigtimedwait(waited, seconds)
    return (info.si_signo, info.si_pid) if info else (0, 0)


def _is_released(held: socket.socket) -> bool:
    """Return whether the launcher has closed the connection."""
    held.settimeout(0)
    try:
        return not held.recv(1)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _host() -> environment.TrainingEnvironment:
    """Return the environment of the host that this rank belongs to."""
    base_dir = os.environ.get(contract.BASE_DIR_VARIABLE, contract.DEFAULT_BASE_DIR)
    here = environment.read(base_dir, os.environ)
    if here.cluster.single_machine:
        host = here.cluster.hosts[int(os.environ.get(contract.RANK_VARIABLE, "0")) // processes_per_host(here)]
        here = environment.read(host.base_dir, {**os.environ, contract.BASE_DIR_VARIABLE: host.base_dir})
    return here


def _start(here: environment.TrainingEnvironment, mask: Iterable[int]) -> int:
    """Start the program in a process group of its own, with this signal mask; return its process id."""
    command = user_code.command(here)
    env = {**set_world(os.environ, here.cluster), **command.env, **_gpu(here)}
    env[contract.BASE_DIR_VARIABLE] = here.base_dir
    env.pop(contract.LAUNCHER_VARIABLE, None)
    if os.isatty(1):
        # Open MPI connects its ranks to a terminal, where Python writes whole lines. Unbuffered it writes
        # word by word, and Open MPI 4 puts its tag before each of them.
        env.pop("PYTHONUNBUFFERED", None)
    parent = os.getpid()
    program = forks.fork()
    if program == 0:
        _enter_host(here.base_dir)
        # The arguments for this host, not those of the host that runs mpirun: paths in them are this host's.
        _exec(command.argv, env, command.cwd, parent, mask)
    with contextlib.suppress(OSError):  # in its own group already
        os.setpgid(program, program)
    return program


def set_world(env: Mapping[str, str], cluster: Cluster) -> dict[str, str]:
    """Return a rank's variables with those of `contract.WORLD_VARIABLES` that it does not have, and what JAX needs.

    All ranks agree on the ports of the first host, which are reserved for the job. A port is bound by rank 0, if its
    program asks for that.
    """
    first = cluster.lead
    ranks = {name: env[own] for name, own in contract.OPEN_MPI_VARIABLES.items() if own in env}
    coordinator = first.endpoint(contract.JAX_PORT)
    world = {
        # By default JAX listens at every address of the machine.
        **({_JAX_BINDS: coordinator} if cluster.single_machine and _JAX_COORDINATOR not in env else {}),
        **ranks,
        "MASTER_ADDR": first.address,
        "MASTER_PORT": str(first.ports[contract.TORCH_PORT]),
        _JAX_COORDINATOR: coordinator,
    }
    if _JAX_DETECTS not in env:
        scheme = "tcp6" if ":" in first.address else "tcp"
        world[_JAX_DETECTS] = f"0.0;{scheme}://{coordinator}"
        env = {name: value for name, value in env.items() if name != _JAX_REQUIRES_MPI4PY}
    return {**world, **env}


def _enter_host(base_dir: str) -> None:
    """Enter a namespace whose ``/opt/ml`` is this host's where it is that of the host that runs ``mpirun``."""
    launcher = os.environ.get(contract.BASE_DIR_VARIABLE, contract.DEFAULT_BASE_DIR)
    if base_dir == launcher or not namespace.is_base_dir(launcher):
        return
    try:
        namespace.enter(base_dir)
    except OSError as error:
        sys.stderr.write(f"scriptmode: warning: /opt/ml is not that of this host: {error.strerror}\n")
        sys.stderr.flush()


def _exec(argv: tuple[str, ...], env: dict[str, str], cwd: str, parent: int, mask: Iterable[int]) -> None:
    """Replace the forked child with the program. Never returns."""
    try:
        os.setpgid(0, 0)
        system.die_with_parent()
        children.restore_defaults()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if os.getppid() == parent:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)  # noqa: S606 - never a shell
    except (OSError, ValueError) as error:
        sys.stderr.write(f"scriptmode: {argv[0]} cannot be started: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(_COMMAND_NOT_STARTED)


def _gpu(here: environment.TrainingEnvironment) -> dict[str, str]:
    """Return the variables that restrict the rank to the GPU of its local rank, if the job requests it.

    It is for scripts that do not select a GPU. Horovod's own examples select one of all visible GPUs.
    """
    gpus = os.environ.get(_VISIBLE_GPUS) or ",".join(map(str, range(here.machine.gpus)))
    if not gpus or not contract.enabled(here.framework_parameters.get(contract.MPI_BIND_GPUS)):
        return {}
    names = gpus.split(",")
    gpu = names[int(os.environ.get(contract.LOCAL_RANK_VARIABLE, "0")) % len(names)]
    # JAX selects the GPU of the local rank itself; here the rank sees one.
    return {_VISIBLE_GPUS: gpu, _JAX_DEVICES: os.environ.get(_JAX_DEVICES, "0")}


if __name__ == "__main__":
    forks.restart_without_threads("scriptmode_runtime.rank")
    sys.exit(main())
