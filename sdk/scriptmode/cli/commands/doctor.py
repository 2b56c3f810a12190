"""``scriptmode doctor``."""

from __future__ import annotations

import json

import click

from scriptmode.cli import output
from scriptmode.cli.options import PLATFORMS
from scriptmode.doctor import examine, text


@click.command()
@click.option("--platform", type=click.Choice(PLATFORMS), help="Where jobs shall run. [default: local]")
@click.option("--json", "as_json", is_flag=True, help="Print the checks as a JSON list.")
def doctor(platform: str | None, as_json: bool) -> None:  # noqa: FBT001 - click gives it so
    """See what this machine has for training jobs, and what to do about what is missing.

    Exit code 1 when there is a problem: it lets no job start, or a job's files are damaged. A warning is about what
    only some jobs need.

    \b
    Example:
      scriptmode doctor
      scriptmode doctor --platform sagemaker
    """  # noqa: D301 - click's mark for lines to be left as they are
    checks = examine(platform=platform)
    output.echo(json.dumps([check.to_dict() for check in checks], indent=2) if as_json else text(checks))
    if any(check.outcome == "problem" for check in checks):
        raise SystemExit(1)
