"""Following a job in the live view, as plain lines or silently, and hints on how to follow it again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from scriptmode import ScriptmodeError, TrainingJob, TrainingJobError
from scriptmode._core.text.messages import still_running
from scriptmode_cli._options.options import add_options
from scriptmode_cli._program import output
from scriptmode_cli._program.group import INTERRUPTED

plain_option = click.option(
    "--plain", "is_plain", is_flag=True, help="Print the log as plain lines, without the live view."
)
_wait_option = click.option(
    "--wait/--no-wait", default=True,
    help="Follow the job until it ends, or return as soon as it has started. [default: --wait]",
)  # fmt: skip
wait_options = add_options((_wait_option, plain_option))


def follow_job(job: TrainingJob, *, is_plain: bool, **lines: Any) -> None:
    """Follow a job until it ends; raise the job's error unless it completed. ``lines`` are ``hosts`` and ``tail``."""
    try:
        job.follow(live=False if is_plain else None, **lines)
    except KeyboardInterrupt as error:
        # It printed how to follow the job again.
        raise click.exceptions.Exit(INTERRUPTED) from error


def follow_or_print(job: TrainingJob, *, wait: bool, is_plain: bool, as_json: bool) -> None:
    """Follow a new job, or print its name; with ``as_json`` print its description, after it ended with ``wait``."""
    if as_json:
        _print_description(job, wait=wait)
        return
    with _hint_on_write_error(job):
        if wait:
            output.echo(f"training job {job.name} started")
            follow_job(job, is_plain=is_plain)
        else:
            output.echo(job.name)
            output.echo(f"follow it: scriptmode logs -f {job.name}; stop it: scriptmode stop {job.name}", err=True)


def _print_description(job: TrainingJob, *, wait: bool) -> None:
    """Print a job's description; with ``wait`` after it has ended, raising the job's error unless it completed."""
    with hint_on_interrupt(job, follow=wait, as_json=True), _hint_on_write_error(job, as_json=True):
        try:
            description = job.wait() if wait else job.describe()
        except TrainingJobError as error:
            output.print_json(error.description)
            raise
        output.print_json(description)


@contextmanager
def hint_on_interrupt(job: TrainingJob, *, follow: bool = True, as_json: bool = False) -> Iterator[None]:
    """Print on Ctrl-C that the job continues, and how to follow it again."""
    try:
        yield
    except KeyboardInterrupt as error:
        if not follow:
            raise
        _print_hint(job, "Interrupted", INTERRUPTED, as_json=as_json)
        raise click.exceptions.Exit(INTERRUPTED) from error


@contextmanager
def _hint_on_write_error(job: TrainingJob, *, as_json: bool = False) -> Iterator[None]:
    """Print that the new job continues if the output of the command cannot be written."""
    try:
        yield
    except OSError as error:
        # A job whose status is not known may continue.
        has_ended = False
        with suppress(ScriptmodeError):
            has_ended = job.ended
        if not has_ended:
            _print_hint(job, type(error).__name__, 1, as_json=as_json)
        raise


def _print_hint(job: TrainingJob, error: str, code: int, *, as_json: bool) -> None:
    text = f"{still_running(job.name, job.platform.queue_position(job.name))}. Stop it: scriptmode stop {job.name}"
    if as_json:
        text = json.dumps({"error": error, "message": text, "exit_code": code, "job": job.name})
    output.echo(text if as_json else f"\n{text}", err=True)
