"""``scriptmode model download JOB``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scriptmode.cli import completers, output
from scriptmode.cli.group import Group
from scriptmode.cli.options import job_options_before, json_option

if TYPE_CHECKING:
    from scriptmode import TrainingJob


@click.group(cls=Group)
def model() -> None:
    """Fetch what a job has trained.

    \b
    Example:
      scriptmode model download mnist-1 model
    """  # noqa: D301 - click's mark for lines to be left as they are


@model.command()
@job_options_before("folder")
@click.argument("folder", required=False, type=click.Path(path_type=Path), shell_complete=completers.complete_directory)
@click.option("--no-extract", is_flag=True, help="The one archive, as it is stored.")
@json_option
def download(job: TrainingJob, folder: Path | str | None, *, no_extract: bool, as_json: bool) -> None:
    """Fetch the model of JOB into FOLDER, and print its path.

    FOLDER is new or empty; where none is named, it is one named JOB. With --last the first word is FOLDER.

    \b
    Example:
      scriptmode model download mnist-1 model
      scriptmode model download --last model
    """  # noqa: D301 - click's mark for lines to be left as they are
    place = job.download_model(Path(job.name) if folder is None else folder, extract=not no_extract)
    if not no_extract and not any(place.iterdir()):
        output.echo(f"the model of {job.name} is empty: its script wrote nothing into SM_MODEL_DIR", err=True)
    if as_json:
        output.print_json({"job": job.name, "folder": str(place), "files": _files(place)})
    else:
        output.echo(str(place))


def _files(place: Path) -> list[str]:
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
