"""What follows the start of a job: its end, or the way to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, TypeVar

import click

from scriptmode import TrainingJobError
from scriptmode.cli import following, output

if TYPE_CHECKING:
    from scriptmode import TrainingJob

_Function = TypeVar("_Function", bound=Callable[..., Any])


def wait_options(function: _Function) -> _Function:
    """Add --wait and --no-wait, and --plain."""
    wait = click.option("--wait/--no-wait", default=True, help="Follow the job to its end, which is the default.")
    return wait(following.plain_option(function))


def require_view_to_follow(*, wait: bool, is_plain: bool, as_json: bool) -> None:
    """Raise `SpecError` for a view that there is not, before a job is started that it shall show."""
    if wait and not as_json:
        following.require_view(is_plain=is_plain)


def follow_or_print(job: TrainingJob, *, wait: bool, is_plain: bool, as_json: bool) -> None:
    """Follow a new job, or say its name; as JSON its description, once it has ended where it is waited for."""
    if as_json:
        print_description_json(job, wait=wait)
        return
    with following.hint_on_write_error(job):
        if wait:
            output.echo(f"training job {job.name} started")
            following.follow_job(job, is_plain=is_plain)
        else:
            output.echo(job.name)
            output.echo(f"follow it: scriptmode logs -f {job.name}; stop it: scriptmode stop {job.name}", err=True)


def print_description_json(job: TrainingJob, *, wait: bool) -> None:
    """Print a job's description, once it has ended where it is waited for; raises how it ended."""
    with following.hint_on_interrupt(job, follow=wait, as_json=True), following.hint_on_write_error(job, as_json=True):
        try:
            description = job.wait() if wait else job.describe()
        except TrainingJobError as error:
            output.print_json(error.description)
            raise
        output.print_json(description)
