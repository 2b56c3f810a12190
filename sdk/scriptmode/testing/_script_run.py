"""`entry_point`: a run of a training script as a job would run it, and its result."""

from __future__ import annotations

import json
import sys
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode._core.platforms import registry
from scriptmode._estimator import Estimator
from scriptmode._results import artifacts
from scriptmode._results.metrics import Metrics, to_metrics
from scriptmode.errors import DataNotFoundError, SpecError, TrainingJobError, invalid
from scriptmode.testing import _in_process as in_process
from scriptmode.testing._host_layout import Layout
from scriptmode_runtime import contract
from scriptmode_runtime._files import directory_tree

if TYPE_CHECKING:
    import os

    from scriptmode._core.spec.job_failure import Failure
    from scriptmode._job import TrainingJob
    from scriptmode_local._service.one_host import PreparedHost
    from scriptmode_runtime._launch.script_process import ScriptProcess

IN_PROCESS, PROCESS, JOB = MODES = ("in-process", "process", "job")
_ONE_HOST = Layout()
#: Arguments of the estimator that `Layout` or `entry_point` itself sets.
_FIXED = frozenset(
    {"entry_point", "instance_type", "instance_count", "instance_groups", "distribution", "platform",
     "sagemaker_session", "container_entry_point", "container_arguments", "output_path", "disable_output_compression"}
)  # fmt: skip


@dataclass(frozen=True)
class EntryPointRun:
    """How a script ended, and what it was given and left.

    Attributes:
        exit_code: The exit code, 128 + n for signal n.
        failure: Why the run failed, as of `TrainingJob`; ``None`` for one that succeeded.
        model: The directory with what is in ``SM_MODEL_DIR`` at the end; of a job, that of all hosts,
            and nothing if the job failed.
        output: The same for ``SM_OUTPUT_DATA_DIR``.
        log: What the script wrote to standard output and standard error; of a job, one host after the other.
        metrics: The metrics in the log, as `TrainingJob.metrics` returns them.
        variables: The environment variables that the script has in addition to this process's: ``SM_*``, ``TF_CONFIG``
            and others; empty with the mode ``"job"``.
        exception: The exception that ended the script in this process: ``raise run.exception`` to debug it. ``None``
            with the modes ``"process"`` and ``"job"``, and for a script that succeeded or called ``sys.exit``.
    """

    exit_code: int
    failure: Failure | None
    model: Path
    output: Path
    log: str = field(repr=False)
    metrics: Metrics = field(repr=False)
    variables: Mapping[str, str] = field(repr=False)
    exception: Exception | None = field(default=None, repr=False)

    @property
    def tf_config(self) -> dict[str, Any] | None:
        """The value of ``TF_CONFIG``; ``None`` where the script has none."""
        text = self.variables.get("TF_CONFIG")
        return None if text is None else dict(json.loads(text))


def entry_point(
    script: str | os.PathLike[str],
    *,
    inputs: object = None,
    hosts: Layout = _ONE_HOST,
    mode: str = IN_PROCESS,
    directory: str | os.PathLike[str] | None = None,
    **arguments: object,
) -> EntryPointRun:
    """Run a training script as a job on these hosts would run it, and return how it ended.

    The script gets its arguments, variables, channels and working directory from the same code as in a job. A script
    that fails raises nothing: see ``exit_code`` and ``failure`` of the result.

    ``mode`` is one of

    * ``"in-process"``: the script runs as ``__main__`` in this process, from the user's own files, so that coverage,
      debuggers and monkeypatching work. The environment, ``sys.argv``, ``sys.path``, the working directory, standard
      streams, signal handlers, filters of warnings, the root logger and the modules of the source are restored;
      libraries stay imported. ``os._exit``, and a signal that ends a process, end the test run too; functions of
      ``atexit`` run at its end. Output that does not come through Python, as of subprocesses, is not in the log.
    * ``"process"``: the script runs as one process, without the other hosts, and all its output is in the log.
    * ``"job"``: all hosts run, as a real job on this machine.

    The first two use this interpreter: ``requirements.txt`` is not installed, and ``/opt/ml`` exists under the paths
    of ``SM_*`` only. With MPI they run the script as it would be without ``mpirun``: one rank, with the host's
    ``SM_*`` variables and none of Open MPI's. A script that connects to the other hosts needs ``"job"``.

    Args:
        script: The script, relative to ``source_dir`` if that is given, as of `Estimator`.
        inputs: The inputs, as `Estimator.fit` takes them, such as ``{"train": "data"}``.
        hosts: The hosts of the job, and as which of them the script runs; by default one host.
        mode: ``"in-process"``, ``"process"`` or ``"job"``.
        directory: The directory for a new directory with all files of the run. By default a temporary one, which is
            removed with the result.
        arguments: Other arguments of `Estimator`, such as ``source_dir``, ``hyperparameters``,
            ``metric_definitions="keras"``, ``environment`` or ``model_dir``.

    Returns:
        The result, with paths that exist as long as the directory does.

    Raises:
        SpecError: For arguments that cannot make a job, and a host that does not run the script.
        SourceError: For a script that is missing, or that the hosts' Python cannot compile.
        DataError: For inputs that cannot be read.
    """
    __tracebackhide__ = True
    if mode not in MODES:
        raise invalid("mode", f"is {mode!r}", f"give one of {', '.join(MODES)}")
    if fixed := sorted(_FIXED & arguments.keys()):
        step = "leave it out; hosts= names the hosts"
        raise SpecError(f"{fixed[0]} is not an argument here", step, argument=fixed[0])
    registry.require_local_jobs()
    parent = None if directory is None else Path(directory).absolute()
    folder = Path(tempfile.mkdtemp(prefix="entry-point-", dir=parent))
    arguments = {"entry_point": script, **hosts.estimator_arguments, **arguments}
    try:
        run = _run_job(folder, inputs, arguments) if mode == JOB else _run_host(folder, inputs, hosts, mode, arguments)
    except BaseException:
        if directory is None:
            directory_tree.remove_tree(folder, failed=lambda *_: None)
        raise
    if directory is None:
        weakref.finalize(run, directory_tree.remove_tree, folder)
    return run


def _run_host(folder: Path, inputs: object, hosts: Layout, mode: str, arguments: Mapping[str, Any]) -> EntryPointRun:
    __tracebackhide__ = True
    from scriptmode_local._service.one_host import OneHostPlatform

    platform = OneHostPlatform(data_dir=folder)
    estimator = Estimator(platform=platform, **arguments)
    estimator.fit(inputs, wait=False, logs=False)
    with platform.prepared_host(hosts.host_name) as host:
        process = _find_task(host, hosts)
        exception = None
        if mode == PROCESS:
            words = process.python_arguments
            status = host.run(process.spec.argv if words is None else (sys.executable, *words), process)
            sys.stdout.write(host.log.read_text(encoding="utf-8", errors="replace"))
        elif process.python_arguments is None:
            what = f"is {mode!r}, and {arguments['entry_point']} is not a Python program"
            raise invalid("mode", what, "use 'process'")
        else:
            status, exception = in_process.run(_program(host, process, arguments), host.log)
        failure = host.describe_failure(process, status) if status else None
        return EntryPointRun(
            exit_code=status if status >= 0 else 128 - status,
            failure=failure,
            model=host.sandbox.model,
            output=host.sandbox.base / contract.OUTPUT_DATA_DIR,
            log=host.log.read_text(encoding="utf-8", errors="replace"),
            metrics=to_metrics(host.metrics(), host.job.request.algorithm.metric_definitions),
            variables=process.spec.env,
            exception=exception,
        )


def _find_task(host: PreparedHost, hosts: Layout) -> ScriptProcess:
    __tracebackhide__ = True
    for process in host.processes:
        if hosts.task in ("", process.spec.name):
            return process
    names = ", ".join(process.spec.name for process in host.processes) or "none: it runs TensorFlow's servers only"
    what = f"{hosts.host_name} does not run the script as task {hosts.task!r}; its tasks are {names}"
    raise SpecError(what, argument="hosts", advice="use one of layouts(...)")


def _program(host: PreparedHost, process: ScriptProcess, arguments: Mapping[str, Any]) -> in_process.Program:
    """Return the program with the user's own files, where they are on this machine."""
    cwd, is_from_git = process.spec.cwd, bool(arguments.get("git_config"))
    source = None if is_from_git or arguments.get("source_dir") is None else Path(arguments["source_dir"]).absolute()
    script = (Path(cwd) if is_from_git else source or Path.cwd()) / arguments["entry_point"]
    variables = {**host.variables, **process.spec.env}
    return in_process.Program(process.python_arguments or (), variables, cwd, script, source)


def _run_job(folder: Path, inputs: object, arguments: Mapping[str, Any]) -> EntryPointRun:
    """Run all hosts as a job in the data directory ``folder``."""
    __tracebackhide__ = True
    from scriptmode_local import LocalPlatform

    platform = LocalPlatform(data_dir=folder)
    job = Estimator(platform=platform, **arguments).fit(inputs, wait=False, logs=False)
    try:
        with suppress(TrainingJobError):
            job.wait()
    except BaseException:
        platform.delete(job.name)
        raise
    failure, log = job.failure, "".join(f"{event.message}\n" for event in job.logs())
    sys.stdout.write(log)
    return EntryPointRun(
        exit_code=0 if job.status == "Completed" else (failure and failure.exit_code) or 1,
        failure=failure,
        model=_artifact(job, "model", folder),
        output=_artifact(job, "output", folder),
        log=log,
        metrics=job.metrics(),
        variables={},
    )


def _artifact(job: TrainingJob, name: str, folder: Path) -> Path:
    """Return the directory with an artifact of an ended job; an empty one without it."""
    target, uri = folder / name, f"{(folder / 'jobs' / job.name / 'output').as_uri()}/{name}.tar.gz"
    with suppress(DataNotFoundError):
        return artifacts.download(job.platform, uri, target, extract=True)
    target.mkdir(exist_ok=True)
    return target
