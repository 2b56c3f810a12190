"""The table of all checks, and the order and the deadlines in which they run.

A check that may hang, on a network or a file system, runs in a daemon thread until its deadline, beside the others. One
that starts programs, each with a deadline, runs in the caller's thread: Ctrl-C ends its programs.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Callable

from scriptmode.doctor import aws_checks, machine_checks, program_checks
from scriptmode.doctor.check import PROBLEM, WARNING, Check, engine_checks, ok, problem, problem_from_error, warning
from scriptmode.errors import ScriptmodeError, invalid

#: Seconds for a check in a thread: the caller waits at a terminal, and a job would be as slow.
_SECONDS = 9.0
LOCAL, SAGEMAKER, SLURM = "local", "sagemaker", "slurm"
#: Checks of this machine that jobs need, and those that jobs of a cluster need.
_NEEDED, _NEEDED_BY_CLUSTERS = ("scriptmode",), ("scriptmode", "Python", "disk", "jobs")
_ACCOUNT = ("credentials", "Region", "clock")
#: Modules that several checks import: imported before the threads start, which could deadlock in import locks.
_PRELOADED = ("scriptmode.core.aws.session", "scriptmode.containers.docker_client")
_PRELOADED_LOCAL = ("scriptmode.platforms.local", "scriptmode.platforms.local.store.data_dir_checks")


@dataclass
class _Row:
    """Checks that run one after another: ``look`` yields a finding for each of ``names``.

    ``platform`` is the one whose jobs need what is checked; a problem of the other one becomes a warning.
    """

    platform: str
    names: tuple[str, ...]
    look: Callable[[], Iterator[Check]]
    in_thread: bool = True
    found: list[Check] = field(default_factory=list)
    thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread of checks that have one."""
        if self.in_thread:
            # Not a thread pool: its shutdown waits for a thread that hangs.
            self.thread = threading.Thread(target=lambda: self.found.extend(self._findings()), daemon=True)
            self.thread.start()

    def checks(self, platform: str, deadline: float) -> Iterator[Check]:
        """Yield each check as soon as it is there, and one with the reason for each that is missing."""
        if self.thread:
            self.thread.join(max(0.0, deadline - time.monotonic()))
        findings = iter([*self.found]) if self.thread else self._findings()
        missing = warning("not checked", "")
        if self.thread and self.thread.is_alive():
            advice = "run scriptmode doctor again when this machine is less busy"
            missing = warning(f"no answer within {_SECONDS:g} s", advice)
        last = ""
        for name in self.names:
            finding = next(findings, None) or replace(missing, advice=missing.advice or f"see {last}")
            last = last if finding.found == "not checked" else name
            is_needed = self.platform == platform or name in (
                _NEEDED if platform in (LOCAL, SAGEMAKER) else _NEEDED_BY_CLUSTERS
            )
            outcome = WARNING if finding.outcome == PROBLEM and not is_needed else finding.outcome
            yield replace(finding, name=name, outcome=outcome)

    def _findings(self) -> Iterator[Check]:
        try:
            yield from self.look()
        except ScriptmodeError as error:
            yield problem_from_error(error)
        except Exception as error:  # noqa: BLE001 - whatever a broken installation raises is a finding
            advice = "correct what this names; if it names nothing, report it as a bug of scriptmode"
            yield problem(f"the check failed: {type(error).__name__}: {error}", advice)


def _table(platform: str) -> list[_Row]:
    """Return all checks in the order of a report: those of the platform first, the slow imports last."""
    is_cloud = platform == SAGEMAKER
    account = (*_ACCOUNT, "Amazon SageMaker") if is_cloud else _ACCOUNT
    local = [
        _Row(LOCAL, ("disk",), machine_checks.disk),
        _Row(LOCAL, ("jobs",), machine_checks.jobs),
        _Row(LOCAL, ("ports",), machine_checks.ports),
        _Row(LOCAL, ("memory",), machine_checks.memory),
        _Row(LOCAL, ("FUSE",), machine_checks.fuse),
        _Row(LOCAL, ("namespaces",), machine_checks.namespaces),
        _Row(LOCAL, ("Docker",), machine_checks.docker),
    ]
    cloud = [
        _Row(SAGEMAKER, account, partial(aws_checks.account, is_cloud)),
        _Row(SAGEMAKER, ("config file",), aws_checks.config_file),
    ]
    python = _Row(LOCAL, ("Python",), program_checks.python, in_thread=False)
    if not sys.platform.startswith("linux"):
        return [python, *cloud]
    if platform == SLURM:
        # Only here, because it needs Linux.
        from scriptmode.doctor import slurm_checks

        # Steps of srun, which Ctrl-C ends.
        local.insert(0, _Row(SLURM, ("Slurm", "shared files"), slurm_checks.cluster, in_thread=False))
    elif checks := engine_checks().get(platform):
        local.insert(0, _engine_row(platform, checks))
    return [
        python,
        _Row(LOCAL, ("scriptmode", "ssh", "MPI"), program_checks.runtime, in_thread=False),
        *((cloud + local) if is_cloud else (local + cloud)),
        _Row(LOCAL, ("TensorFlow", "Keras", "Horovod"), program_checks.frameworks, in_thread=False),
    ]


def _engine_row(platform: str, checks: Mapping[str, Callable[[], tuple[str, str]]]) -> _Row:
    """Return the checks of another package's engine."""

    def look() -> Iterator[Check]:
        for each in checks.values():
            found, advice = each()
            yield problem(found, advice) if advice else ok(found)

    return _Row(platform, tuple(checks), look, in_thread=False)


def platforms() -> tuple[str, ...]:
    """Return the platforms that have checks."""
    return LOCAL, SAGEMAKER, SLURM, *engine_checks()


def examine(*, platform: str | None = None) -> list[Check]:
    """Examine this machine for training jobs. Changes nothing.

    Args:
        platform: ``"local"``, the default, ``"sagemaker"``, ``"slurm"`` or ``"kubernetes"``: its checks come first,
            and only what it requires is a problem. Amazon SageMaker is called only for ``"sagemaker"``, a step of each
            partition runs only for ``"slurm"``, a pod only for ``"kubernetes"``, and AWS STS is called whenever there
            are credentials.

    Returns:
        The checks in the order of a report; `text` renders them.

    Raises:
        SpecError: ``platform`` has another value.
    """
    return list(examine_each(platform=platform))


def examine_each(
    *, platform: str | None = None, waiting: Callable[[tuple[str, ...]], None] | None = None
) -> Iterator[Check]:
    """Examine this machine like `examine`, and yield each check as soon as it and those before it are there.

    Args:
        platform: As for `examine`.
        waiting: Called with the names of the checks that are waited for next.

    Yields:
        The checks in the order of a report.

    Raises:
        SpecError: ``platform`` has another value.
    """
    if platform not in (None, *platforms()):
        raise invalid("platform", f"is {platform!r}", f"give one of {', '.join(map(repr, platforms()))}")
    platform = platform or LOCAL
    python, *rows = _table(platform)
    yield from python.checks(platform, 0.0)
    show = waiting or (lambda _: None)
    show(rows[0].names)
    for module in (*_PRELOADED, *(_PRELOADED_LOCAL if sys.platform.startswith("linux") else ())):
        with suppress(ImportError):
            import_module(module)
    for row in rows:
        row.start()
    deadline = time.monotonic() + _SECONDS
    for row in rows:
        show(row.names)
        yield from row.checks(platform, deadline)
