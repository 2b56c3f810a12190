"""``scriptmode cp JOB:PATH TARGET``."""

from __future__ import annotations

from pathlib import Path

import click

from scriptmode.cli import completers, output
from scriptmode.cli.options import account_options, attach_job, json_option, last_option, platform_option
from scriptmode.core.text.messages import pluralize
from scriptmode.core.text.terminal_text import escape_unprintable
from scriptmode.results.job_files import AREAS, copy_job_files

_AREAS = ", ".join(AREAS)


def _complete_source(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    job, colon, path = incomplete.partition(":")
    if colon:
        return [f"{job}:{area}" for area in AREAS if area.startswith(path)]
    return [f"{name}:" for name in completers.complete_job(ctx, param, incomplete)]


@click.command()
@click.argument("source", metavar="JOB:PATH", shell_complete=_complete_source)
@click.argument("target", type=click.Path(path_type=Path), default=".", shell_complete=completers.complete_file)
@last_option
@click.option(
    "--host",
    metavar="NAME",
    help="Host whose files are copied while JOB runs on this machine, such as algo-2. [default: algo-1]",
)
@platform_option()
@account_options
@json_option
def cp(source: str, target: Path, *, last: bool, host: str | None, platform: str | None, as_json: bool) -> None:
    """Copy a file or directory of JOB to TARGET, by default into the current directory.

    PATH begins with one of model, output, checkpoints, code and log. While JOB runs on this machine, and after it
    failed, the files are those of a host; after it completed, they are its artifacts. With --last, write :PATH.

    Links that lead out of the job's directory are not copied.

    \b
    Example:
      scriptmode cp mnist-1:model .
      scriptmode cp mnist-1:log/algo-1.log failed.log
      scriptmode cp --last :checkpoints/epoch-3 . --host algo-2
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    name, colon, path = source.partition(":")
    context = click.get_current_context()
    if not colon:
        raise click.UsageError(f"{source!r} has no path; write {source}:PATH, where PATH is one of {_AREAS}", context)
    if str(target).partition(":")[1] and not target.parent.exists():
        raise click.UsageError(f"TARGET {str(target)!r} is not a path of this machine; cp copies from jobs", context)
    job = attach_job(name or None, last=last, platform=platform)
    copied = copy_job_files(job.platform, job.platform.describe(job.name), path, target, host=host)
    for each in copied.skipped:
        output.echo(f"not copied: {escape_unprintable(each)} is not a file of the job that can be read", err=True)
    found = {"job": job.name, "files": copied.files, "skipped": copied.skipped}
    output.print_result(found, f"copied {pluralize(len(copied.files), 'file')} to {copied.target}", as_json=as_json)
