"""``train``: read, prepare, plan, run, report, exit."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from scriptmode_runtime import _environment as environment, _report as report, contract
from scriptmode_runtime._environment import keras
from scriptmode_runtime._launch import aws_programs, user_code
from scriptmode_runtime._launch.host_variables import host_variables
from scriptmode_runtime._launch.supervisor import Supervisor
from scriptmode_runtime._peers.agreement import Agreement
from scriptmode_runtime._processes import forks
from scriptmode_runtime._processes.host_processes import HostProcesses
from scriptmode_runtime._processes.launcher_output import LauncherOutput
from scriptmode_runtime._processes.loop import HANDLED, Loop
from scriptmode_runtime._processes.streams import Sink
from scriptmode_runtime._strategies import plan_for
from scriptmode_runtime._values.errors import ConfigurationError, RuntimeFailure
from scriptmode_runtime._values.failure import LAUNCHER_FAILED, HostFailure
from scriptmode_runtime.plan import LaunchPlan, ProcessSpec, as_document

if TYPE_CHECKING:
    from scriptmode_runtime._mpi.daemons import Daemons
    from scriptmode_runtime._peers.lead import Lead
    from scriptmode_runtime._peers.member import Member
    from scriptmode_runtime._processes.hang import HangDetector

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
    if argv is None:
        forks.restart_without_threads("scriptmode_runtime")
    # No later file gets the number of a closed standard descriptor.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004 - stdin, stdout, stderr
        pass
    os.close(descriptor)
    # A signal stays pending until the supervisor handles signals; process 1 would lose it.
    signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
    return _train()


def _print_plan() -> int:
    import json

    here = None
    try:
        here = environment.read(_base_dir(), os.environ)
        user_code.check(here)
        plan = aws_programs.with_upload(here, plan_for(here, user_code.command(here)))
    except RuntimeFailure as error:
        sys.stderr.write(f"scriptmode: {report.create_redaction(here)(str(error))}\n")
        return LAUNCHER_FAILED
    document = report.create_redaction(here).document(as_document(plan))
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
        failure = HostFailure("", "launcher", LAUNCHER_FAILED, str(error))
    except Exception as error:  # noqa: BLE001 - every error is reported to the platform
        import traceback

        failure = HostFailure("", "launcher", LAUNCHER_FAILED, f"{error!r} in the runtime\n{traceback.format_exc()}")
    if failure is None:
        report.release(output)
    else:
        failure = HostFailure(**report.create_redaction(here).document(failure._asdict()))
        if is_host:
            report.write(output, failure)
        if line := _log_line(failure, here):
            # A log that is full, or whose reader has stopped or closed it, changes no outcome.
            Sink(2).write(f"scriptmode: {line}{_END}".encode("utf-8", "replace"))
    if here:
        aws_programs.upload_rest(here)
    return failure.exit_code if failure else 0


def _log_line(failure: HostFailure, here: environment.TrainingEnvironment | None) -> str:
    """Return the first line of a failure; without the host's name in the host's own log.

    Return "" for a process of this host, whose end the supervisor logged; mpirun starts ranks itself.
    """
    line = failure.message.partition(_END)[0]
    own = here.host if here else ""
    is_process = failure.process != "launcher" and not failure.process.startswith("rank ")
    if (
        failure.host == own
        and is_process
        and line.startswith((f"{own}, {failure.process}: exit code ", f"{own}, {failure.process}: killed by "))
    ):
        return ""
    return line[len(own) + 2 :] if own and line.startswith((f"{own}, ", f"{own}: ")) else line


def _supervise(read: environment.TrainingEnvironment) -> HostFailure | None:
    """Run everything that this host has to run, and report every failure to the other hosts."""
    with contextlib.ExitStack() as scratch, Loop() as loop, LauncherOutput(loop) as output:
        here, problem = _prepare(read, scratch)
        processes = HostProcesses(read.host, loop, output)
        peers = _join(here, processes)
        agreement = Agreement(peers)
        daemons = _create_daemons(here, peers, agreement, processes)
        hang_detector = _create_hang_detector(here, peers, agreement, processes)

        def describe(spec: ProcessSpec, status: int, text: str) -> HostFailure:
            return report.describe(read, spec, status, text, daemons.first_failure if daemons else None)

        grace = read.settings.stop_grace
        supervisor = Supervisor(
            processes, agreement, describe, stop_grace=grace, daemons=daemons, hang_detector=hang_detector
        )
        with contextlib.ExitStack() as connections, supervisor:
            if peers:
                connections.callback(peers.close)
            if daemons:
                connections.callback(daemons.close)
            try:
                if problem:
                    raise problem
                if daemons:
                    os.environ[contract.LAUNCHER_VARIABLE] = here.launcher_socket
                    daemons.listen(here.launcher_socket)
                _run(here, supervisor, processes)
            except RuntimeFailure as error:
                message = f"{read.host}: {str(error).removeprefix(f'{read.host}: ')}"
                message = report.create_redaction(read)(message)
                supervisor.abort(HostFailure(read.host, "launcher", LAUNCHER_FAILED, message))
            scratch.close()
            return supervisor.finish()


def _prepare(
    read: environment.TrainingEnvironment, scratch: contextlib.ExitStack
) -> tuple[environment.TrainingEnvironment, RuntimeFailure | None]:
    """Create what the protocol with the other hosts needs; return an error for it to report, not to raise."""
    try:
        return scratch.enter_context(_scratch(read)), None
    except RuntimeFailure as error:
        return read, error


def _join(here: environment.TrainingEnvironment, processes: HostProcesses) -> Lead | Member | None:
    """Start the protocol with the other hosts, if this host trains with any. Raises `ClusterError`."""
    if here.strategy == contract.SINGLE or len(here.cluster.hosts) == 1:
        return None
    from scriptmode_runtime._peers import lead, member
    from scriptmode_runtime._peers.base import Times

    secret = here.cluster.secret or here.settings.secret
    if not secret:
        # It keeps out other jobs by accident, but no attacker.
        secret = here.job_name
        processes.output.log_line(
            f"{contract.SECRET_VARIABLE} is not set: hosts authenticate each other with the job's name only"
        )
    silence = here.settings.host_timeout
    times = Times(silence=silence, heartbeat=min(Times().heartbeat, silence / 4))
    side = lead.Lead if here.cluster.leads else member.Member
    loop, on_wait = processes.loop, processes.output.log_line
    peers: Lead | Member = side(here.cluster, secret.encode(), loop.selector, loop.clock, times, on_wait)
    peers.start()
    loop.tickers.append(peers)
    return peers


def _create_daemons(
    here: environment.TrainingEnvironment, peers: Lead | Member | None, agreement: Agreement, processes: HostProcesses
) -> Daemons | None:
    """Create the server for ``mpirun``, its ranks and its daemons, where the job needs it."""
    if here.strategy != contract.MPI:
        return None
    from scriptmode_runtime._mpi.daemons import Daemons

    daemons = Daemons(here.cluster, peers, agreement, processes)
    processes.loop.tickers.append(daemons)
    return daemons


def _create_hang_detector(
    here: environment.TrainingEnvironment, peers: Lead | Member | None, agreement: Agreement, processes: HostProcesses
) -> HangDetector | None:
    """Create what answers requests for stacks, and the detector of hangs, where the job asks for it."""
    if not here.stacks:
        return None
    from scriptmode_runtime._processes.stacks import StackRequests

    loop, output, redact = processes.loop, processes.output, report.create_redaction(here)
    loop.tickers.append(StackRequests(here.base_dir, here.stacks, loop.clock, redact))
    if not here.settings.hang_seconds:
        return None
    from scriptmode_runtime._processes.hang import HangDetector, HangHooks

    hooks = HangHooks(lambda: output.relay.chunks, lambda text: output.log_line(redact(text)))
    if here.settings.hang_fails:
        hooks = hooks._replace(on_hang=agreement.fail)
    detector = HangDetector(here.cluster, peers, loop.clock, here.settings.hang_seconds, here.stacks, hooks)
    loop.tickers.append(detector)
    return detector


@contextlib.contextmanager
def _scratch(here: environment.TrainingEnvironment) -> Iterator[environment.TrainingEnvironment]:
    """Create directories for stacks, which stays, and for sockets, if the job needs them; raise `RuntimeFailure`."""
    folder = here.path(contract.STACKS_DIR)
    if here.settings.hang_seconds:
        _create_directory(folder, mode=0o700)
    if os.path.isdir(folder):
        from scriptmode_runtime._processes import stacks

        # Every descendant that runs Python can write its stacks.
        os.environ.update(stacks.stack_variables(folder, os.environ))
        here = here._replace(stacks=folder, inherited={**here.inherited, "PYTHONPATH": os.environ["PYTHONPATH"]})
    if here.strategy != contract.MPI:
        yield here
        return
    from scriptmode_runtime._files import scratch

    with scratch.directory(os.environ.get("TMPDIR", "")) as folder:
        for name in _SESSIONS:
            os.environ.setdefault(name, folder)
        yield here._replace(scratch=folder)


def _create_directory(path: str, mode: int = 0o777) -> None:
    try:
        os.makedirs(path, mode=mode, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be created: {error.strerror}; free space on its volume, or make it writable"
        ) from error


def _run(here: environment.TrainingEnvironment, supervisor: Supervisor, processes: HostProcesses) -> None:
    """Install the program's requirements, then run it."""
    os.environ.update(host_variables(here, os.environ))
    for name in (contract.MODEL_DIR, contract.OUTPUT_DATA_DIR, contract.OUTPUT_INTERMEDIATE_DIR):
        _create_directory(here.path(name))
    for prepare in (user_code.fetch, user_code.install):
        spec = prepare(here)
        if spec and supervisor.run(LaunchPlan(main=spec), last=False):
            return
    plan = aws_programs.with_upload(here, plan_for(here, user_code.command(here)))
    _log_keras(here, plan, processes)
    serves = here.cluster.single_machine and any("TF_CONFIG" in spec.env for spec in (*plan.trainers, *plan.services))
    with _servers_on_loopback(plan, processes) if serves else contextlib.nullcontext():
        supervisor.run(plan)


def _log_keras(here: environment.TrainingEnvironment, plan: LaunchPlan, processes: HostProcesses) -> None:
    """Log on the first host that its tasks use Keras 2."""
    variable = contract.LEGACY_KERAS_VARIABLE
    if here.cluster.leads and plan.main and variable in plan.main.env:
        version = keras.find_legacy_keras(here)
        processes.output.log_line(
            f"tf.keras is Keras 2 of tf-keras {version} ({variable}=1), because Keras 3 cannot fit on several "
            f"workers or with parameter servers; {variable}=0 in the job's environment keeps Keras 3"
        )


@contextlib.contextmanager
def _servers_on_loopback(plan: LaunchPlan, processes: HostProcesses) -> Iterator[None]:
    """Refuse connections to TensorFlow servers of this plan at all addresses of this machine except loopback ones."""
    from scriptmode_runtime._processes import loopback

    ports = loopback.loopback_ports(plan)
    # The task itself reports a port that another program has bound. A job that sets the variable handles its own ports.
    if not ports or loopback.REUSE_PORT in os.environ or any(map(loopback.is_taken, ports)):
        yield
        return
    os.environ[loopback.REUSE_PORT] = "true"
    loop = processes.loop
    with contextlib.closing(loopback.LoopbackOnly(ports, loop.selector, loop.clock)) as listeners:
        loop.tickers.append(listeners)
        if listeners.exposed:
            endpoints = ", ".join(listeners.exposed)
            processes.output.log_line(f"TensorFlow's servers can be reached from other machines at {endpoints}")
        try:
            yield
        finally:
            loop.tickers.remove(listeners)


def _base_dir() -> str:
    return os.path.abspath(os.environ.get(contract.BASE_DIR_VARIABLE) or contract.DEFAULT_BASE_DIR)


if __name__ == "__main__":
    sys.exit(main())
