"""Options that many verbs have: which job, on which platform, of which account, and how it is printed."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, Callable, TypeVar

import click

from scriptmode import TrainingJob
from scriptmode.cli import completers, output

if TYPE_CHECKING:
    from collections.abc import Mapping

_Function = TypeVar("_Function", bound=Callable[..., Any])
PLATFORMS = ("local", "sagemaker")
#: Variables that boto3 would follow rather than the profile of another one.
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def account_options(function: _Function) -> _Function:
    """Add --region and --profile, which boto3 goes by for this command."""
    region = click.option(
        "--region", metavar="NAME", expose_value=False, callback=_use_region, help="Of Amazon SageMaker."
    )
    profile = click.option(
        "--profile", metavar="NAME", expose_value=False, callback=use_profile, help="Of the AWS settings."
    )
    return region(profile(function))


def platform_option(
    help_text: str = "Where the job is. [default: where it is found]",
) -> Callable[[_Function], _Function]:
    """Add --platform."""
    return click.option("--platform", type=click.Choice(PLATFORMS), help=help_text)


def job_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add JOB and --last, and the options that say where it is; the function is given the job as ``job``."""
    return job_options_before(None)(function)


def job_options_before(rest: str | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add what `job_options` adds where an argument ``rest`` comes after JOB: with --last every word is of that one."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @click.argument("job", required=False, shell_complete=completers.complete_job)
        @last_option
        @platform_option()
        @account_options
        @functools.wraps(function)
        def command(job: str | None, *, last: bool, platform: str | None, **given: Any) -> Any:
            if (
                last
                and job is not None
                and rest is not None
                and (given[rest] is None or isinstance(given[rest], tuple))
            ):
                given[rest], job = job if given[rest] is None else (job, *given[rest]), None
            return function(attach_job(job, last=last, platform=platform), **given)

        return command

    return add


def last_option(function: _Function) -> _Function:
    """Add --last."""
    return click.option("--last", is_flag=True, help="The newest job, instead of JOB.")(function)


def attach_job(name: str | None, *, last: bool, platform: str | None) -> TrainingJob:
    """Give the job that JOB or --last means; raise `click.UsageError` where they do not name one."""
    if name is not None and last:
        raise click.UsageError(f"JOB is {name!r}, but --last names a job too; keep one", _context())
    if name is None and not last:
        raise click.UsageError("JOB is missing; name a job, or say --last for the newest", _context())
    return TrainingJob.attach(newest_job_name(platform) if name is None else name, platform=platform)


def newest_job_name(platform: str | None) -> str:
    """Return the name of the newest job that can be read, on this machine where no platform is named."""
    found = TrainingJob.list(platform, limit=1)
    if found and not completers.is_readable(found[0]):
        output.echo(
            f"--last: {found[0]['TrainingJobName']} is passed over, it cannot be read: scriptmode list", err=True
        )
        found = list(filter(completers.is_readable, TrainingJob.list(platform)))
    if not found:
        raise click.ClickException(f"--last: there are {no_jobs_text(platform)}; start one with scriptmode run")
    return str(found[0]["TrainingJobName"])


def no_jobs_text(platform: str | None, which: str = "training jobs") -> str:
    """Say that a platform has none of the jobs asked for."""
    return f"no {which} {'in this account and Region' if platform == 'sagemaker' else 'on this machine'}"


def job_name_option(help_text: str) -> Callable[[_Function], _Function]:
    """Add --job-name; an empty one, as of a variable that is not set, is refused."""
    return click.option("--job-name", metavar="NAME", callback=_name, help=help_text)


def _name(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001 - click's form
    if value == "":
        raise click.UsageError("--job-name is empty; give a name, or leave --job-name out", ctx)
    return value


def set_environment(ctx: click.Context, changes: Mapping[str, str | None]) -> None:
    """Set variables of the environment until the command is done; ``None`` takes one away."""
    before = {name: os.environ.get(name) for name in changes}

    def put(values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    ctx.call_on_close(lambda: put(before))
    put(changes)


def _use_region(ctx: click.Context, param: click.Parameter, value: str | None) -> None:  # noqa: ARG001 - click's form
    if value is not None:
        set_environment(ctx, {"AWS_DEFAULT_REGION": value, "AWS_REGION": value})


def use_profile(ctx: click.Context, param: click.Parameter, value: str | None) -> None:  # noqa: ARG001 - likewise
    """Have boto3 use a profile of the AWS settings, for this command."""
    if value is not None:
        # Whoever names a profile means its account, not the one whose keys are in the environment; botocore looks at
        # AWS_DEFAULT_PROFILE before it looks at AWS_PROFILE.
        set_environment(ctx, {"AWS_PROFILE": value, **dict.fromkeys(("AWS_DEFAULT_PROFILE", *_KEYS))})


def _context() -> click.Context | None:
    return click.get_current_context(silent=True)
