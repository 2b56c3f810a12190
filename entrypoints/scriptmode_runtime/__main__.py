"""``train``: read, prepare, plan, run, report, exit."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

from scriptmode_runtime import contract, environment, report, user_code
from scriptmode_runtime.errors import ConfigurationError, RuntimeFailure
from scriptmode_runtime.failure import LAUNCHER_FAILED, Failure
from scriptmode_runtime.plan import LaunchPlan, as_document
from scriptmode_runtime.processes.loop import STOPPING
from scriptmode_runtime.strategies import plan_for
from scriptmode_runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode_runtime.mpi.daemons import Daemons
    from scriptmode_runtime.mpi.ssh_keys import Keys
    from scriptmode_runtime.plan import ProcessSpec

#: The folder for the stacks that processes write, in `TrainingEnvironment.scratch`.
STACKS_FOLDER = "stacks"
#: Variables for the parent of Open MPI 4's and 5's session directories, which a killed mpirun leaves.
_SESSIONS = ("OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base")
_USAGE = "usage: train [--plan]\n"
_END = "\n"


def main(argv: list[str] | None = None) -> int:
    """Run this host's part of the training job and return the exit code; ``--plan`` prints the plan instead."""
    words = sys.argv[1:] if argv is None else argv
    if words == ["--plan"]:
        return _print_plan()
    # SageMaker starts an image as `<image> train`.
    if words not in ([], ["train"]):
        sys.stderr.write(_USAGE)
        return 0 if words in (["-h"], ["--help"]) else 2
    _open_standard_descriptors()
    # A signal to stop stays pending until the supervisor handles signals; process 1 would lose it.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    return _train()


def _print_plan() -> int:
    import json

    here = None
    try:
        here = environment.read(_base_dir(), os.environ)
        user_code.check(here)
        plan = _plan(here)
    except RuntimeFailure as error:
        sys.stderr.write(f"scriptmode: {report.redaction(here)(str(error))}\n")
        return LAUNCHER_FAILED
    document = report.redaction(here).document(as_document(plan))
    sys.stdout.write(json.dumps(document, indent=2, sort_keys=True) + "\n")
    return 0


def _train() -> int:
    base_dir = _base_dir()
    output = os.path.join(base_dir, contract.OUTPUT_DIR)
    is_host = os.path.isdir(os.path.join(base_dir, contract.CONFIG_DIR))
    if is_host:
        report.prepare(output)
    here = None
    try:
        here = environment.read(base_dir, os.environ)
        # For the launcher only, not for the processes that it starts.
        os.environ.pop(contract.SECRET_VARIABLE, None)
        failure = _supervise(here)
    except RuntimeFailure as error:
        failure = Failure("", "launcher", LAUNCHER_FAILED, str(error))
    except Exception as error:  # noqa: BLE001 - every error is reported to the platform
        import traceback

        failure = Failure("", "launcher", LAUNCHER_FAILED, f"{error!r} in the runtime\n{traceback.format_exc()}")
    if failure is None:
        report.release(output)
        return 0
    message = report.redaction(here)(failure.message)
    if is_host:
        report.write(output, message)
    with contextlib.suppress(OSError):  # a log that is full, or closed by its reader, does not change the outcome
        os.write(2, f"scriptmode: {message.partition(_END)[0]}{_END}".encode("utf-8", "replace"))
    return failure.exit_code


def _supervise(read: environment.TrainingEnvironment) -> Failure | None:
    """Run everything that this host has to run, and report every failure to the other hosts."""
    daemons: Daemons | None = None

    def describe(spec: ProcessSpec, status: int, text: str) -> Failure:
        return report.describe(read, spec, status, text, daemons.first_failure if daemons else None)

    with Supervisor(read.host, describe, stop_grace=read.settings.stop_grace) as supervisor:
        supervisor.prefix_lines = bool(read.settings.log_prefix)
        try:
            with _scratch(read) as here:
                _join(here, supervisor, _create_keys(here))
                daemons = _start_services(here, supervisor)
                _run(here, supervisor)
        except RuntimeFailure as error:
            if not supervisor.has_peers:
                _join(read, supervisor, None)
            text = str(error)
            message = text if text.startswith(f"{read.host}: ") else f"{read.host}: {text}"
            message = report.redaction(read)(message)
            supervisor.abort(Failure(read.host, "launcher", LAUNCHER_FAILED, message))
        return supervisor.finish()


def _create_keys(here: environment.TrainingEnvironment) -> Keys | None:
    """Create this host's key, where ``mpirun`` reaches other hosts over ssh."""
    if not (here.ssh and here.has_daemons):
        return None
    from scriptmode_runtime.mpi.ssh_keys import Keys

    return Keys(here.ssh, here.cluster, here.scratch)


def _join(here: environment.TrainingEnvironment, supervisor: Supervisor, keys: Keys | None) -> None:
    """Start the protocol with the other hosts, if this host trains with any."""
    if here.strategy == contract.SINGLE or len(here.cluster.hosts) == 1:
        return
    from scriptmode_runtime.peers.base import Times

    secret = here.cluster.secret or here.settings.secret
    if not secret:
        # It keeps out other jobs by accident, but no attacker.
        secret = here.job_name
        supervisor.log_line(
            f"{contract.SECRET_VARIABLE} is not set: hosts authenticate each other with the job's name only"
        )
    silence = here.settings.host_timeout
    times = Times(silence=silence, heartbeat=min(Times().heartbeat, silence / 4))
    peers = supervisor.join(here.cluster, secret.encode(), times, keys.facts if keys else None)
    if keys:
        peers.on_joined = keys.trust


def _start_services(here: environment.TrainingEnvironment, supervisor: Supervisor) -> Daemons | None:
    """Start to detect hangs and to serve ``mpirun``, where the job needs them."""
    if here.settings.hang_seconds:
        folder = os.path.join(here.scratch, STACKS_FOLDER)
        seconds, fails = here.settings.hang_seconds, here.settings.hang_fails
        supervisor.detect_hangs(here.cluster, seconds, folder, fails=fails, hide=report.redaction(here))
    if here.strategy != contract.MPI:
        return None
    os.environ[contract.LAUNCHER_VARIABLE] = here.launcher_socket
    return supervisor.serve_daemon_requests(here.cluster, os.environ[contract.LAUNCHER_VARIABLE])


def _enable_stack_dumps(here: environment.TrainingEnvironment) -> environment.TrainingEnvironment:
    """Set the variables with which every descendant that runs Python can write its stacks."""
    from scriptmode_runtime.processes import stacks

    folder = os.path.join(here.scratch, STACKS_FOLDER)
    os.mkdir(folder, mode=0o700)
    os.environ.update(stacks.stack_variables(folder, os.environ))
    return here._replace(inherited=here.inherited._replace(python_path=os.environ["PYTHONPATH"]))


@contextlib.contextmanager
def _scratch(here: environment.TrainingEnvironment) -> Iterator[environment.TrainingEnvironment]:
    """Create the launcher's scratch folder where the job needs one; remove it at the end. Raises `ClusterError`."""
    if here.strategy != contract.MPI and not here.settings.hang_seconds:
        yield here
        return
    from scriptmode_runtime.files import scratch

    with scratch.directory(os.environ.get("TMPDIR", "")) as folder:
        here = here._replace(scratch=folder)
        if here.strategy == contract.MPI:
            for name in _SESSIONS:
                os.environ.setdefault(name, folder)
        yield _enable_stack_dumps(here) if here.settings.hang_seconds else here


def _run(here: environment.TrainingEnvironment, supervisor: Supervisor) -> None:
    path = ""
    try:
        for name in (contract.MODEL_DIR, contract.OUTPUT_DATA_DIR, contract.OUTPUT_INTERMEDIATE_DIR):
            path = here.path(name)
            os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be created: {error.strerror}; free space on its volume, or make it writable"
        ) from error
    for prepare in (user_code.fetch, user_code.install):
        spec = prepare(here)
        if spec and supervisor.run(LaunchPlan(main=spec), last=False):
            return
    plan = _plan(here)
    if here.cluster.single_machine:
        _restrict_to_loopback(plan, supervisor)
    supervisor.run(plan)


def _restrict_to_loopback(plan: LaunchPlan, supervisor: Supervisor) -> None:
    """Restrict the TensorFlow servers of hosts on one machine to that machine."""
    from scriptmode_runtime.processes import loopback

    ports = loopback.loopback_ports(plan)
    # The task itself reports a port that another program has bound. A job that sets the variable handles its own ports.
    if ports and loopback.REUSE_PORT not in os.environ and not any(map(loopback.is_taken, ports)):
        os.environ[loopback.REUSE_PORT] = "true"
        supervisor.restrict_to_loopback(ports)


def _plan(here: environment.TrainingEnvironment) -> LaunchPlan:
    """Return this host's plan, after the program's requirements are installed."""
    return plan_for(here, user_code.command(here))


def _open_standard_descriptors() -> None:
    """Open the null device in place of a closed standard descriptor, so that no later file gets its number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004 - stdin, stdout, stderr
        pass
    os.close(descriptor)


def _base_dir() -> str:
    return os.path.abspath(os.environ.get(contract.BASE_DIR_VARIABLE) or contract.DEFAULT_BASE_DIR)


if __name__ == "__main__":
    sys.exit(main())
