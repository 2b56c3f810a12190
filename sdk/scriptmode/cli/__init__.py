"""The ``scriptmode`` command: one file per verb."""

from __future__ import annotations

import sys

import click

from scriptmode import ScriptmodeError
from scriptmode.cli.describe import describe
from scriptmode.cli.image import image
from scriptmode.cli.jobs import jobs
from scriptmode.cli.list_jobs import list_jobs
from scriptmode.cli.logs import logs
from scriptmode.cli.stop import stop


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="scriptmode")
def scriptmode() -> None:
    """Look after training jobs of this machine and of Amazon SageMaker, and the images they train in.

    \b
    Example:
      scriptmode list
      scriptmode logs -f tensorflow-training-2026-01-31-12-00-00-000
    """  # noqa: D301 - click's mark for lines to be left as they are


for command in (describe, image, jobs, list_jobs, logs, stop):
    scriptmode.add_command(command)


def main() -> None:
    """Run the command; an error of ours is one line and exit code 1."""
    try:
        scriptmode()
    except ScriptmodeError as error:
        click.echo(f"scriptmode: {error}", err=True)
        sys.exit(1)
