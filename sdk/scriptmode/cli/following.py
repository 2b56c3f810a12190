"""Following a job from the command line: in the live view, in plain lines, or silently."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, TypeVar

import click

from scriptmode import ScriptmodeError, TrainingJobError
from scriptmode.cli import output
from scriptmode.display import choose_view
from scriptmode.messages import still_running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode import TrainingJob

_Function = TypeVar("_Function", bound=Callable[..., Any])


def plain_option(function: _Function) -> _Function:
    """Add --plain."""
    return click.option("--plain", "is_plain", is_flag=True, help="Lines alone, no live view.")(function)


def require_view(*, is_plain: bool) -> None:
    """Raise `SpecError` for a view that there is not, before anything is started."""
    choose_view(False if is_plain else None)


def follow_job(job: TrainingJob, *, is_plain: bool) -> None:
    """Follow a job to its end; raises how it ended, unless it completed."""
    job.follow(live=False if is_plain else None)


@contextmanager
def hint_on_interrupt(job: TrainingJob, *, follow: bool = True, as_json: bool = False) -> Iterator[None]:
    """Say on Ctrl-C how to come back to a job that goes on."""
    try:
        yield
    except KeyboardInterrupt as error:
        if follow:
            _say(job, "Interrupted", 130, as_json=as_json)
        if as_json:
            # Of an interrupt click writes an empty line, which is no JSON.
            raise click.Abort from error
        raise


@contextmanager
def hint_on_write_error(job: TrainingJob, *, as_json: bool = False) -> Iterator[None]:
    """Say of a job that was just started that it goes on, where what the command writes is not taken any more."""
    try:
        yield
    except OSError as error:
        if _goes_on(job):
            _say(job, type(error).__name__, 1, as_json=as_json)
        raise


def _goes_on(job: TrainingJob) -> bool:
    try:
        return not job.ended
    except ScriptmodeError:
        # Whoever cannot ask is to look again.
        return True


def _say(job: TrainingJob, error: str, code: int, *, as_json: bool) -> None:
    text = f"{still_running(job.name)}. Stop it: scriptmode stop {job.name}"
    if as_json:
        text = json.dumps({"error": error, "message": text, "exit_code": code, "job": job.name})
    output.echo(text if as_json else f"\n{text}", err=True)


def wait_options(function: _Function) -> _Function:
    """Add --wait and --no-wait, and --plain."""
    wait = click.option("--wait/--no-wait", default=True, help="Follow the job to its end, which is the default.")
    return wait(plain_option(function))


def require_view_to_follow(*, wait: bool, is_plain: bool, as_json: bool) -> None:
    """Raise `SpecError` for a view that there is not, before a job is started that it shall show."""
    if wait and not as_json:
        require_view(is_plain=is_plain)


def follow_or_print(job: TrainingJob, *, wait: bool, is_plain: bool, as_json: bool) -> None:
    """Follow a new job, or say its name; as JSON its description, once it has ended where it is waited for."""
    if as_json:
        print_description_json(job, wait=wait)
        return
    with hint_on_write_error(job):
        if wait:
            output.echo(f"training job {job.name} started")
            follow_job(job, is_plain=is_plain)
        else:
            output.echo(job.name)
            output.echo(f"follow it: scriptmode logs -f {job.name}; stop it: scriptmode stop {job.name}", err=True)


def print_description_json(job: TrainingJob, *, wait: bool) -> None:
    """Print a job's description, once it has ended where it is waited for; raises how it ended."""
    with hint_on_interrupt(job, follow=wait, as_json=True), hint_on_write_error(job, as_json=True):
        try:
            description = job.wait() if wait else job.describe()
        except TrainingJobError as error:
            output.print_json(error.description)
            raise
        output.print_json(description)
