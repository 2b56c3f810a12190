"""The processes of a host that run the user's script, for a test that runs one of them without the launcher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from scriptmode_runtime import _environment as environment, _report as report, contract
from scriptmode_runtime._launch import user_code
from scriptmode_runtime._strategies import plan_for
from scriptmode_runtime.plan import ProcessSpec

if TYPE_CHECKING:
    from scriptmode_runtime._environment import TrainingEnvironment


class ScriptProcess(NamedTuple):
    """A process that runs the user's script."""

    spec: ProcessSpec
    #: The arguments of Python: a file, or ``-m`` and a module, then the script's; None for another program.
    python_arguments: tuple[str, ...] | None


def prepare(base_dir: str, environ: Mapping[str, str]) -> tuple[ScriptProcess, ...]:
    """Unpack the source of a host on this machine, and return its processes. Raises `RuntimeFailure`."""
    here = environment.read(base_dir, environ)
    user_code.fetch(here)
    # The caller's interpreter must have the requirements: they are not installed.
    user_code.install(here)
    return _script_processes(here)


def plan(base_dir: str, files: environment.Files, environ: Mapping[str, str]) -> tuple[ScriptProcess, ...]:
    """Return the processes of a host with these ``files`` of the platform, as `preview` has them; its source is unread.

    Raises `RuntimeFailure`.
    """
    here = environment.with_machine(environment.from_files(base_dir, files, environ), environ)
    return _script_processes(here._replace(source={}))


def report_failure(base_dir: str, environ: Mapping[str, str], spec: ProcessSpec, status: int, output: str) -> None:
    """Write the files about a failed process as the launcher does; ``status``: exit code, or minus a signal."""
    here = environment.read(base_dir, environ)
    report.write(here.path(contract.OUTPUT_DIR), report.describe(here, spec, status, output))


def _script_processes(here: TrainingEnvironment) -> tuple[ScriptProcess, ...]:
    """Return the processes of the host's plan that run the script; under MPI one rank, as ``mpirun`` would start it."""
    command = user_code.command(here)
    if here.strategy == contract.MPI:
        specs = [ProcessSpec("rank", command.argv, command.env, command.cwd)]
    else:
        specs = [spec for spec in plan_for(here, command).trainers if spec.argv == command.argv]
    words = command.argv[1:] if command.argv[0] == command.python else None
    return tuple(ScriptProcess(spec, words) for spec in specs)
