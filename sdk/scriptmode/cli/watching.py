"""``scriptmode run --watch``: a job that is started again whenever a file of its source is saved."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from scriptmode import Estimator, ScriptmodeError, SourceError, SpecError, TrainingJob
from scriptmode.cli import following, output
from scriptmode.cli.error_reporting import report_error
from scriptmode.cli.run_options import RunOptions
from scriptmode.core.source.source_archive import file_versions

_Versions = dict[str, tuple[int, int]]

_POLL_SECONDS = 0.3


def run_again_on_save(options: RunOptions, *, is_plain: bool) -> NoReturn:
    """Start a job, follow it, and start another one when its source was saved; until Ctrl-C.

    A job that still runs is stopped first. An error of the source or of the job is printed, and the next save awaited,
    and from the second job on every error. Raises `SpecError` for a job that cannot be started again.
    """
    estimator = options.estimator()
    _require_local_source(estimator, options.job_name)
    correctable: type[ScriptmodeError] = SourceError
    while True:
        before = _versions(estimator)
        changed = _run_once(estimator, options, before, correctable, is_plain=is_plain)
        # The options were accepted: what fails now may be mended before the next save.
        correctable = ScriptmodeError
        if not changed:
            output.echo("-- waiting until a file of the source is saved; Ctrl-C ends this")
            while not changed:
                time.sleep(_POLL_SECONDS)
                changed = _changed(estimator, before)
        output.echo(f"\n-- {', '.join(changed[:3])}{' and others' if changed[3:] else ''} changed: running again")


def _require_local_source(estimator: Estimator, job_name: str | None) -> None:
    script = estimator.spec.script
    if job_name is not None:
        raise SpecError(
            f"--watch starts several jobs, but --job-name {job_name!r} is the name of one",
            advice="leave --job-name out, or name the jobs with --set base_job_name=...",
        )
    if script is None or script.git is not None or script.is_packed:
        raise SpecError("--watch needs a source on this machine", advice="name a PROGRAM of this machine")
    # Of a program that does not exist nothing could be saved.
    file_versions(script)


def _run_once(
    estimator: Estimator, options: RunOptions, before: _Versions, correctable: type[ScriptmodeError], *, is_plain: bool
) -> list[str]:
    """Start a job and follow it until it ends or the source is saved; return the names of the files that changed.

    An error of the start that is ``correctable`` is printed, and another one is raised.
    """
    try:
        job = estimator.fit(options.inputs, wait=False)
    except correctable as error:
        report_error(error, as_json=False)
        return []
    with _stopped_on_save(estimator, before, job) as changed:
        try:
            output.echo(f"training job {job.name} started")
            following.follow_job(job, is_plain=is_plain)
        except ScriptmodeError as error:
            if not changed:
                report_error(error, as_json=False)
    return changed


@contextmanager
def _stopped_on_save(estimator: Estimator, before: _Versions, job: TrainingJob) -> Iterator[list[str]]:
    """Stop a job as soon as its source is saved; yield a list, which gets the names of the files that changed."""
    changed: list[str] = []
    ended = threading.Event()

    def watch() -> None:
        while not changed and not ended.wait(_POLL_SECONDS):
            if found := _changed(estimator, before):
                changed.extend(found)
                try:
                    job.stop()
                except ScriptmodeError as error:
                    output.echo(f"scriptmode: {error}", err=True)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield changed
    finally:
        ended.set()
        thread.join()


def _changed(estimator: Estimator, before: _Versions) -> list[str]:
    """Return the files that differ from ``before``, once no more of them changes."""
    now = _versions(estimator)
    while now != before:
        time.sleep(_POLL_SECONDS)
        now, last = _versions(estimator), now
        if now == last:
            break
    return sorted(name for name in {*now, *before} if now.get(name) != before.get(name))


def _versions(estimator: Estimator) -> _Versions:
    script = estimator.spec.script
    try:
        return {} if script is None else file_versions(script)
    except (SourceError, OSError):
        # A program that does not exist yet, or any more.
        return {}
