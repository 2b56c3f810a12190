"""One MPI rank: runs the user's program with the variables and the folder of the host it belongs to.

It stays as the program's parent, and tells the launcher how a bad end came before ``mpirun`` can: of the ranks that end
within a moment, because their neighbour is gone, ``mpirun`` names any.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import sys

from scriptmode_runtime import children, contract, environment, report, system, user_code
from scriptmode_runtime.errors import RuntimeFailure
from scriptmode_runtime.strategies.mpi import processes_per_host

_VISIBLE_GPUS = "CUDA_VISIBLE_DEVICES"
#: What a shell answers for a program that cannot be started.
_CANNOT_START = 127
_FORWARDED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
)
#: Seconds for which the launcher may be busy.
_TELL_SECONDS = 5.0


def main() -> int:
    """Run the program; end as it ended."""
    try:
        system.die_with_parent()
        system.adopt_orphans()
        here = _host()
        status = _run(here)
    except (RuntimeFailure, OSError, ValueError, IndexError) as error:
        sys.stderr.write(f"scriptmode: {error}\n")
        return _CANNOT_START
    if status:
        _tell(here, status)
    # What the program left holds the rank's output, for whose end mpirun waits.
    children.kill_all(system.descendants(os.getpid()))
    if status < 0:
        _die_of(-status)
    return status


def _host() -> environment.TrainingEnvironment:
    """Give the environment of the host that this rank belongs to."""
    base_dir = os.environ.get(contract.BASE_DIR_VARIABLE, contract.DEFAULT_BASE_DIR)
    here = environment.read(base_dir, os.environ)
    if here.cluster.single_machine:
        host = here.cluster.hosts[int(os.environ.get(contract.RANK_VARIABLE, "0")) // processes_per_host(here)]
        here = environment.read(host.base_dir, {**os.environ, contract.BASE_DIR_VARIABLE: host.base_dir})
    return here


def _run(here: environment.TrainingEnvironment) -> int:
    """Run the program to its end; give its exit code, or minus a signal's number."""
    command = user_code.command(here)
    env = {**os.environ, **command.env, **_gpu(here), contract.BASE_DIR_VARIABLE: here.base_dir}
    env.pop(contract.LAUNCHER_VARIABLE, None)
    if os.isatty(1):
        # Open MPI gives its ranks a terminal, where Python writes whole lines. Unbuffered it writes
        # word by word, and Open MPI 4 puts its tag before each of them.
        env.pop("PYTHONUNBUFFERED", None)
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    program = os.fork()
    if program == 0:
        # This host's own words, not those of the host that runs mpirun: paths in them are this host's.
        _become(command.argv, env, command.cwd, parent)
    with contextlib.suppress(OSError):  # in its own group already
        os.setpgid(program, program)
    for number in _FORWARDED:
        signal.signal(number, lambda number, _frame: _forward(program, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    while True:
        pid, status = os.wait()
        if pid == program:
            return os.waitstatus_to_exitcode(status)


def _become(argv: tuple[str, ...], env: dict[str, str], cwd: str, parent: int) -> None:
    """In the child: become the program. Never returns."""
    try:
        os.setpgid(0, 0)
        system.die_with_parent()
        if os.getppid() == parent:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)  # noqa: S606 - never a shell
    except (OSError, ValueError) as error:
        sys.stderr.write(f"scriptmode: {argv[0]} cannot be started: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(_CANNOT_START)


def _forward(program: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(program, number)


def _tell(here: environment.TrainingEnvironment, status: int) -> None:
    """Tell the launcher of this machine; without one, ``mpirun``'s own words have to do."""
    path = os.environ.get(contract.LAUNCHER_VARIABLE, "")
    rank = int(os.environ.get(contract.RANK_VARIABLE, "0"))
    own = report.redaction(here)(report.users_own(here, here.host))
    words = {"type": "rank", "host": here.host, "rank": rank, "status": status, "own": own}
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as launcher:
        launcher.settimeout(_TELL_SECONDS)
        launcher.connect(path)
        launcher.sendall(json.dumps(words).encode() + b"\n")
        launcher.recv(1)  # it has read that, and may hang up


def _die_of(number: int) -> None:
    """End by the signal that ended the program, for ``mpirun`` to see; the core dump was the program's."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _gpu(here: environment.TrainingEnvironment) -> dict[str, str]:
    """Let the rank see the GPU of its local rank alone, where the job asks for that.

    It is for scripts that know nothing of GPUs. Horovod's own examples choose theirs among all that they see.
    """
    gpus = os.environ.get(_VISIBLE_GPUS) or ",".join(map(str, range(here.machine.gpus)))
    if not gpus or not environment.enabled(here.framework_parameters.get(contract.MPI_BIND_GPUS)):
        return {}
    names = gpus.split(",")
    return {_VISIBLE_GPUS: names[int(os.environ.get(contract.LOCAL_RANK_VARIABLE, "0")) % len(names)]}


if __name__ == "__main__":
    sys.exit(main())
