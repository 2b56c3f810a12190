"""Runs all checks at the same time: within 30 seconds, even if something hangs, and within 10 without the imports.

Each group of checks has a daemon thread and a deadline. A check that has no result at the deadline is a warning.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Callable

from scriptmode.doctor import aws_checks, machine_checks, package_checks, program_checks, storage_checks
from scriptmode.doctor.check import PROBLEM, WARNING, Check, problem, problem_from_error, warning
from scriptmode.errors import ScriptmodeError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Seconds for a group: the caller waits at a terminal, and a job would be as slow.
_SECONDS = 9.0
#: Seconds for the imports, more than `program_runner.IMPORT_SECONDS`.
_IMPORT_SECONDS = 29.0
LOCAL, SAGEMAKER = "local", "sagemaker"
_AGAIN = "run scriptmode doctor again when this machine is less busy"
_UNKNOWN = "correct what this names; if it names nothing, report it as a bug of scriptmode"


@dataclass
class _CheckGroup:
    """Checks that run one after another in a thread; ``found`` grows until the group has ``ended``."""

    names: tuple[str, ...]
    look: Callable[[], Iterator[Check]]
    seconds: float = field(default_factory=lambda: _SECONDS)
    found: list[Check] = field(default_factory=list)
    ended: bool = False

    def run(self) -> None:
        """Run the checks; an error that stops them is recorded as a problem."""
        try:
            self.found.extend(self.look())
        except ScriptmodeError as error:
            self.found.append(problem_from_error(self._next, error))
        except Exception as error:  # noqa: BLE001 - whatever a broken installation raises is a finding
            what = f"the check failed: {type(error).__name__}: {error}"
            self.found.append(problem(self._next, what, _UNKNOWN))
        self.ended = True

    def checks(self) -> list[Check]:
        """Return the checks so far, and a warning with the reason for each name without one."""
        # Read first: if the group ends after this, its checks are complete in ``found`` or reported as late.
        ended = self.ended
        found = list(self.found)
        known = {check.name for check in found}
        late = f"no answer within {self.seconds:g} s", _AGAIN
        why = ("not checked", f"see {found[-1].name}") if ended and found else late
        return [*found, *(warning(name, *why) for name in self.names if name not in known)]

    @property
    def _next(self) -> str:
        return self.names[min(len(self.found), len(self.names) - 1)]


def _local() -> list[_CheckGroup]:
    return [
        _CheckGroup((program_checks.SCRIPTMODE, program_checks.SSH, program_checks.MPI), program_checks.runtime),
        _CheckGroup(
            (package_checks.TENSORFLOW, package_checks.KERAS, package_checks.HOROVOD),
            package_checks.frameworks,
            _IMPORT_SECONDS,
        ),
        _CheckGroup((machine_checks.DOCKER,), machine_checks.docker),
        _CheckGroup((machine_checks.FUSE,), machine_checks.fuse),
        _CheckGroup((storage_checks.DISK,), storage_checks.disk),
        _CheckGroup((storage_checks.JOBS,), storage_checks.jobs),
        _CheckGroup((machine_checks.PORTS,), machine_checks.ports),
        _CheckGroup((machine_checks.MEMORY,), machine_checks.memory),
    ]


def _cloud(*, asks_service: bool) -> list[_CheckGroup]:
    service = (aws_checks.SAGEMAKER,) if asks_service else ()
    return [
        _CheckGroup(
            (aws_checks.CREDENTIALS, aws_checks.REGION, aws_checks.CLOCK, *service),
            partial(aws_checks.account, asks_service),
        ),
        _CheckGroup((aws_checks.CONFIG_FILE,), aws_checks.config_file),
        _CheckGroup((aws_checks.IMAGES,), aws_checks.images),
    ]


#: The checks that jobs on each platform depend on, in the order of a report; Python and scriptmode come first.
_COMMON_CHECKS = (package_checks.PYTHON, program_checks.SCRIPTMODE)
_LOCAL_CHECKS = (
    package_checks.TENSORFLOW,
    package_checks.KERAS,
    package_checks.HOROVOD,
    program_checks.MPI,
    program_checks.SSH,
    machine_checks.DOCKER,
    machine_checks.FUSE,
    storage_checks.DISK,
    storage_checks.JOBS,
    machine_checks.PORTS,
    machine_checks.MEMORY,
)
_SAGEMAKER_CHECKS = (
    aws_checks.CREDENTIALS,
    aws_checks.REGION,
    aws_checks.CLOCK,
    aws_checks.SAGEMAKER,
    aws_checks.CONFIG_FILE,
    aws_checks.IMAGES,
)
#: Modules that several groups import: imported before the threads start, which could deadlock in import locks.
_PRELOADED = ("scriptmode.aws.session", "scriptmode.containers.docker_client")
_PRELOADED_LOCAL = ("scriptmode.platforms.local", "scriptmode.platforms.local.store.probe")


def examine(*, platform: str | None = None) -> list[Check]:
    """Examine this machine for training jobs, within 10 s, or 30 s if imports are slow. Changes nothing.

    Args:
        platform: ``"local"``, the default, or ``"sagemaker"``: its checks come first, and only what it requires is a
            problem. Amazon SageMaker is called only for ``"sagemaker"``, AWS STS whenever there are credentials.

    Returns:
        The checks in the order of a report; `text` renders them.

    Raises:
        SpecError: ``platform`` has another value.

    """
    if platform not in (None, LOCAL, SAGEMAKER):
        raise SpecError(f"platform is {platform!r}", advice=f"give {LOCAL!r} or {SAGEMAKER!r}")
    is_cloud, is_linux = platform == SAGEMAKER, sys.platform.startswith("linux")
    subjects = [_CheckGroup((package_checks.PYTHON,), package_checks.python), *_cloud(asks_service=is_cloud)]
    subjects += _local() if is_linux else []
    for module in (*_PRELOADED, *(_PRELOADED_LOCAL if is_linux else ())):
        with suppress(ImportError):
            import_module(module)
    _run_all(subjects)
    order = (
        (*_COMMON_CHECKS, *_SAGEMAKER_CHECKS, *_LOCAL_CHECKS)
        if is_cloud
        else (*_COMMON_CHECKS, *_LOCAL_CHECKS, *_SAGEMAKER_CHECKS)
    )
    found = [check for subject in subjects for check in subject.checks()]
    return [_weigh(check, is_cloud=is_cloud) for check in sorted(found, key=lambda check: order.index(check.name))]


def _run_all(subjects: Sequence[_CheckGroup]) -> None:
    """Run all groups at once, and wait for each until its deadline."""
    began = time.monotonic()
    # Not a thread pool: its shutdown waits for a thread that hangs.
    threads = [threading.Thread(target=each.run, daemon=True) for each in subjects]
    for thread in threads:
        thread.start()
    for thread, each in zip(threads, subjects):
        thread.join(max(0.0, began + each.seconds - time.monotonic()))


def _weigh(check: Check, *, is_cloud: bool) -> Check:
    """Convert a problem of the other platform to a warning; a problem of Python concerns only local jobs."""
    others = (package_checks.PYTHON, *_LOCAL_CHECKS) if is_cloud else _SAGEMAKER_CHECKS
    return replace(check, outcome=WARNING) if check.outcome == PROBLEM and check.name in others else check
