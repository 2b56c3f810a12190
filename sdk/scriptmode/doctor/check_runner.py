"""Runs all checks at the same time: within 30 seconds, even if something hangs, and within 10 without the imports.

Each row of the table has a daemon thread and a deadline. A check that has no result at the deadline is a warning.
"""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Callable

from scriptmode.doctor import aws_checks, machine_checks, program_checks
from scriptmode.doctor.check import PROBLEM, WARNING, Check, Finding, problem, problem_from_error, warning
from scriptmode.errors import ScriptmodeError, invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds for a row: the caller waits at a terminal, and a job would be as slow.
_SECONDS = 9.0
#: Seconds for the imports, more than `program_runner.IMPORT_SECONDS`.
_IMPORT_SECONDS = 29.0
LOCAL, SAGEMAKER = "local", "sagemaker"
#: These come first in a report. The second is a problem on both platforms.
_FIRST = ("Python", "scriptmode")
#: Modules that several rows import: imported before the threads start, which could deadlock in import locks.
_PRELOADED = ("scriptmode.aws.session", "scriptmode.containers.docker_client")
_PRELOADED_LOCAL = ("scriptmode.platforms.local", "scriptmode.platforms.local.store.probe")


@dataclass
class _Row:
    """Checks that run one after another in a thread; ``found`` grows until they have ``ended``.

    ``look`` yields a finding for each of ``names``. ``platform`` is the one whose jobs need what is checked.
    """

    platform: str
    names: tuple[str, ...]
    look: Callable[[], Iterator[Finding]]
    seconds: float = field(default_factory=lambda: _SECONDS)
    found: list[Finding] = field(default_factory=list)
    ended: bool = False

    def run(self) -> None:
        """Run the checks; an error that stops them is recorded as a problem."""
        try:
            self.found.extend(self.look())
        except ScriptmodeError as error:
            self.found.append(problem_from_error(error))
        except Exception as error:  # noqa: BLE001 - whatever a broken installation raises is a finding
            advice = "correct what this names; if it names nothing, report it as a bug of scriptmode"
            self.found.append(problem(f"the check failed: {type(error).__name__}: {error}", advice))
        self.ended = True

    def checks(self, platform: str) -> Iterator[Check]:
        """Yield the checks so far, and a warning with the reason for each name without one.

        A problem of what only the other platform needs becomes a warning.
        """
        # Read first: if the row ends after this, its checks are complete in ``found`` or reported as late.
        ended = self.ended
        found = list(self.found)
        missing = warning(
            f"no answer within {self.seconds:g} s", "run scriptmode doctor again when this machine is less busy"
        )
        if ended and found:
            missing = warning("not checked", f"see {self.names[len(found) - 1]}")
        for name, finding in zip(self.names, found + [missing] * len(self.names)):
            is_needed = self.platform == platform or name == "scriptmode"
            outcome = WARNING if finding.outcome == PROBLEM and not is_needed else finding.outcome
            yield Check(name, outcome, finding.found, finding.advice)


def _table(*, asks_service: bool) -> list[_Row]:
    """Return all checks, in the order of a report."""
    account = ("credentials", "Region", "clock", *(["Amazon SageMaker"] if asks_service else []))
    frameworks = ("TensorFlow", "Keras", "Horovod")
    return [
        _Row(LOCAL, ("Python",), program_checks.python),
        _Row(LOCAL, frameworks, program_checks.frameworks, _IMPORT_SECONDS),
        _Row(LOCAL, ("scriptmode", "ssh", "MPI"), program_checks.runtime),
        _Row(LOCAL, ("Docker",), machine_checks.docker),
        _Row(LOCAL, ("FUSE",), machine_checks.fuse),
        _Row(LOCAL, ("disk",), machine_checks.disk),
        _Row(LOCAL, ("jobs",), machine_checks.jobs),
        _Row(LOCAL, ("ports",), machine_checks.ports),
        _Row(LOCAL, ("memory",), machine_checks.memory),
        _Row(SAGEMAKER, account, partial(aws_checks.account, asks_service)),
        _Row(SAGEMAKER, ("config file",), aws_checks.config_file),
        _Row(SAGEMAKER, ("image look-up",), aws_checks.images),
    ]


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
        raise invalid("platform", f"is {platform!r}", f"give {LOCAL!r} or {SAGEMAKER!r}")
    platform, is_linux = platform or LOCAL, sys.platform.startswith("linux")
    rows = _table(asks_service=platform == SAGEMAKER)
    if not is_linux:
        rows = [row for row in rows if row.platform == SAGEMAKER or row.names == ("Python",)]
    for module in (*_PRELOADED, *(_PRELOADED_LOCAL if is_linux else ())):
        with suppress(ImportError):
            import_module(module)
    began = time.monotonic()
    # Not a thread pool: its shutdown waits for a thread that hangs.
    threads = [threading.Thread(target=row.run, daemon=True) for row in rows]
    for thread in threads:
        thread.start()
    for thread, row in zip(threads, rows):
        thread.join(max(0.0, began + row.seconds - time.monotonic()))
    rows.sort(key=lambda row: row.platform != platform)
    checks = [check for row in rows for check in row.checks(platform)]
    return sorted(checks, key=lambda check: (*_FIRST, check.name).index(check.name))
