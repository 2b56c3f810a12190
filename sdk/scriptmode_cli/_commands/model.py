"""``scriptmode model download JOB``."""

from __future__ import annotations

from pathlib import Path

import click

from scriptmode import TrainingJob
from scriptmode_cli._options.options import job_options_before, json_option
from scriptmode_cli._program import output
from scriptmode_cli._program.group import Group


@click.group(cls=Group)
def model() -> None:
    """Download the model that a job trained.

    \b
    Example:
      scriptmode model download mnist-1 model
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap


@model.command()
@job_options_before("folder")
@click.argument("folder", metavar="[DIRECTORY]", required=False, type=click.Path(path_type=Path))
@click.option("--no-extract", is_flag=True, help="Download the archive model.tar.gz, without extracting it.")
@json_option
def download(job: TrainingJob, folder: Path | str | None, *, no_extract: bool, as_json: bool) -> None:
    """Download the model of JOB into DIRECTORY, and print the path.

    DIRECTORY must be empty or not exist; the default is a directory named JOB. With --last the first argument is
    DIRECTORY.

    \b
    Example:
      scriptmode model download mnist-1 model
      scriptmode model download --last model
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    path = job.download_model(Path(job.name) if folder is None else folder, extract=not no_extract)
    if not no_extract and not any(path.iterdir()):
        output.echo(f"the model of {job.name} is empty: its script wrote no files to SM_MODEL_DIR", err=True)
    files = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    output.print_result({"job": job.name, "folder": str(path), "files": files}, str(path), as_json=as_json)
