"""``scriptmode doctor``."""

from __future__ import annotations

import json

import click

from scriptmode.cli import output
from scriptmode.cli.options import PLATFORMS
from scriptmode.doctor import examine, text


@click.command()
@click.option("--platform", type=click.Choice(PLATFORMS), help="Platform on which jobs are to run. [default: local]")
@click.option("--json", "as_json", is_flag=True, help="Print the checks as a JSON list.")
def doctor(platform: str | None, as_json: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Check whether training jobs can run, and print how to fix problems.

    Problems prevent every job from starting, or are damaged files of a job. Warnings are about requirements of some
    jobs only, such as Docker.

    Exit code: 0 if there are no problems; 1 if there is one.

    \b
    Example:
      scriptmode doctor
      scriptmode doctor --platform sagemaker
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    checks = examine(platform=platform)
    output.echo(json.dumps([check.to_dict() for check in checks], indent=2) if as_json else text(checks))
    if any(check.outcome == "problem" for check in checks):
        raise SystemExit(1)
