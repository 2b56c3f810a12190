"""Looks at every subject at the same time, and answers within thirty seconds whatever hangs, ten but for imports."""

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

#: The caller waits at the terminal; what takes longer would take a job as long.
_SECONDS = 9.0
#: More than `asking.IMPORT_SECONDS`, as above.
_IMPORT_SECONDS = 29.0
LOCAL, SAGEMAKER = "local", "sagemaker"
_AGAIN = "look again when this machine has less to do"
_UNKNOWN = "mend what this names; where it names nothing, it is a mistake of scriptmode's: report it"


@dataclass
class _CheckGroup:
    """Some checks that are made one after another; ``found`` grows as they are, until it ``ended``."""

    names: tuple[str, ...]
    look: Callable[[], Iterator[Check]]
    seconds: float = field(default_factory=lambda: _SECONDS)
    found: list[Check] = field(default_factory=list)
    ended: bool = False

    def run(self) -> None:
        """Make the checks; what stops one is found too."""
        try:
            self.found.extend(self.look())
        except ScriptmodeError as error:
            self.found.append(problem_from_error(self._next, error))
        except Exception as error:  # noqa: BLE001 - whatever a broken installation raises is a finding
            what = f"looking at it failed: {type(error).__name__}: {error}"
            self.found.append(problem(self._next, what, _UNKNOWN))
        self.ended = True

    def checks(self) -> list[Check]:
        """Give what was found so far, and for each name without a check why there is none."""
        # Asked first: what ends meanwhile has said all.
        ended = self.ended
        found = list(self.found)
        known = {check.name for check in found}
        late = f"no answer within {self.seconds:g} s", _AGAIN
        why = ("not looked at", f"see {found[-1].name}") if ended and found else late
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


#: What jobs on each platform cannot do without, in the order of a report; Python and scriptmode come first anywhere.
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
#: What subjects load when they are looked at: two threads in one circle of imports would wait for each other.
_PRELOADED = ("scriptmode.aws.session", "scriptmode.containers.docker_client")
_PRELOADED_LOCAL = ("scriptmode.platforms.local", "scriptmode.platforms.local.store.probe")


def examine(*, platform: str | None = None) -> list[Check]:
    """Examine this machine for training jobs, within 10 s, or 30 s where imports take so long; changes nothing.

    ``platform`` is ``"local"``, the default, or ``"sagemaker"``: what that one needs comes first, and only what it
    cannot do without is a problem. Amazon SageMaker is asked only for the latter; who the credentials are is asked
    wherever there are any. Raises `SpecError` for another platform.
    """
    if platform not in (None, LOCAL, SAGEMAKER):
        raise SpecError(f"platform is {platform!r}; say {LOCAL!r} or {SAGEMAKER!r}")
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
    """Look at all of them at once, at each until its deadline."""
    began = time.monotonic()
    # Not a pool, whose end waits for a thread that hangs.
    threads = [threading.Thread(target=each.run, daemon=True) for each in subjects]
    for thread in threads:
        thread.start()
    for thread, each in zip(threads, subjects):
        thread.join(max(0.0, began + each.seconds - time.monotonic()))


def _weigh(check: Check, *, is_cloud: bool) -> Check:
    """Make a warning of a problem of the other platform's; what Python lacks are Linux's processes, for hosts here."""
    others = (package_checks.PYTHON, *_LOCAL_CHECKS) if is_cloud else _SAGEMAKER_CHECKS
    return replace(check, outcome=WARNING) if check.outcome == PROBLEM and check.name in others else check
