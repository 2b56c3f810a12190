"""Options that several verbs share: the job, its platform, its AWS account, and the format of the output."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import Any, Callable, TypeVar

import click

from scriptmode import ScriptmodeError, TrainingJob
from scriptmode._core.aws.session import Connection
from scriptmode._core.machine.data_dir import DATA_DIR_VARIABLE, default_data_dir
from scriptmode._core.spec.service_values import UNREADABLE
from scriptmode_cli._program import output

_Function = TypeVar("_Function", bound=Callable[..., Any])
PLATFORMS = ("local", "sagemaker")
#: Environment variables that boto3 prefers to a profile.
_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")

force_option = click.option(
    "--force", is_flag=True, help="Start also what has more processes than this machine has cores and memory for."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
last_option = click.option("--last", is_flag=True, help="Select the newest job, instead of naming JOB.")


def add_options(options: Iterable[Callable[..., Any]]) -> Callable[[_Function], _Function]:
    """Return a decorator that adds options, in the order of the help."""

    def add(function: _Function) -> _Function:
        for option in reversed([*options]):
            function = option(function)
        return function

    return add


def _use_region(_context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    """Set the AWS Region that boto3 uses."""
    if value is not None:
        os.environ.update(AWS_DEFAULT_REGION=value, AWS_REGION=value)


def _use_profile(_context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        # A profile must win over keys in the environment; botocore reads AWS_DEFAULT_PROFILE before AWS_PROFILE.
        for name in ("AWS_DEFAULT_PROFILE", *_KEYS):
            os.environ.pop(name, None)
        os.environ["AWS_PROFILE"] = value
        Connection().boto_session  # noqa: B018 - raises for a profile that does not exist


#: Of what boto3 uses.
account_options = add_options(
    (
        click.option(
            "--region", metavar="NAME", expose_value=False, callback=_use_region,
            help="AWS Region, such as us-east-1. [default: that of the AWS configuration]",
        ),
        click.option(
            "--profile", metavar="NAME", expose_value=False, callback=_use_profile,
            help="Profile of the AWS configuration. [default: that of the environment]",
        ),
    )
)  # fmt: skip


def job_name_option(help_text: str) -> Callable[[_Function], _Function]:
    """Add --job-name. An empty name, as from an unset shell variable, is an error."""
    return click.option("--job-name", metavar="NAME", callback=_require_name, help=help_text)


def _require_name(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value == "":
        raise click.UsageError("--job-name is empty; add a name, or leave --job-name out")
    return value


def platform_option(
    help_text: str = "Platform of the job. [default: local if this machine has the job, else sagemaker]",
) -> Callable[[_Function], _Function]:
    """Add --platform."""
    return click.option("--platform", type=click.Choice(PLATFORMS), help=help_text)


def complete_job(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of this machine's jobs that begin with ``incomplete``, newest first."""
    import logging

    # A message would appear in the middle of the typed line.
    before = logging.root.manager.disable
    logging.disable()
    try:
        names = [job["TrainingJobName"] for job in TrainingJob.list("local", name_contains=incomplete or None)]
    except ScriptmodeError:
        return []
    finally:
        logging.disable(before)
    return [name for name in names if name.startswith(incomplete)]


jobs_argument = click.argument("jobs", metavar="[JOB...]", nargs=-1, shell_complete=complete_job)
#: What, beside the name, says which job is meant, and where it is.
locating_options = add_options((last_option, platform_option(), account_options))


def job_options_before(rest: str | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return `job_options` for use before an argument ``rest``: with --last every word belongs to that argument."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @click.argument("job", required=False, shell_complete=complete_job)
        @locating_options
        @functools.wraps(function)
        def command(job: str | None, *, last: bool, platform: str | None, **given: Any) -> Any:
            if last and job is not None and rest is not None:
                if isinstance(given[rest], tuple):
                    given[rest], job = (job, *given[rest]), None
                elif given[rest] is None:
                    given[rest], job = job, None
            return function(attach_job(job, last=last, platform=platform), **given)

        return command

    return add


#: Adds JOB and --last, and the options that locate the job; the function gets the job as ``job``.
job_options = job_options_before(None)


def attach_job(name: str | None, *, last: bool, platform: str | None) -> TrainingJob:
    """Return the job that JOB or --last selects; raise `click.UsageError` unless exactly one of them is given.

    An empty JOB, as of an unset variable, does not select the newest one.
    """
    if name is not None and last:
        raise click.UsageError(f"JOB is {name!r}, but --last selects a job too; remove one of them")
    if name is None and not last:
        raise click.UsageError("JOB is missing; name a job, or add --last for the newest one")
    return TrainingJob.attach(_newest_job_name(platform) if name is None else name, platform=platform)


def _newest_job_name(platform: str | None) -> str:
    """Return the name of the newest readable job of a platform, by default of this machine."""
    jobs = list(TrainingJob.list(platform, limit=1))
    if jobs and jobs[0]["TrainingJobStatus"] == UNREADABLE:
        skipped = jobs[0]["TrainingJobName"]
        output.echo(
            f"--last: skipping {skipped}, whose files cannot be read; for the reason run scriptmode list", err=True
        )
        jobs = [job for job in TrainingJob.list(platform) if job["TrainingJobStatus"] != UNREADABLE]
    if not jobs:
        raise click.ClickException(f"--last: there are {no_jobs_text(platform)}; start one with scriptmode run")
    return str(jobs[0]["TrainingJobName"])


def no_jobs_text(platform: str | None, which: str = "training jobs") -> str:
    """Return the text ``no training jobs ...`` for a platform, with the directory that has none."""
    if platform == "sagemaker":
        return f"no {which} in this account and Region"
    folder = default_data_dir()
    named = f" ({DATA_DIR_VARIABLE})" if DATA_DIR_VARIABLE in os.environ else ""
    return f"no {which} on this machine, in {str(folder)!r}{named}{'' if folder.exists() else ', which does not exist'}"
