"""``scriptmode migrate PATH...``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from scriptmode import DataError
from scriptmode.cli import completers, output
from scriptmode.cli.options import json_option
from scriptmode.core.text.messages import pluralize
from scriptmode.v2.migrated_file import MigratedFile, find_files, migrate_file


@click.command()
@click.argument(
    "paths",
    metavar="PATH...",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    shell_complete=completers.complete_file,
)
@click.option("--write", is_flag=True, help="Change the files.")
@json_option
def migrate(paths: tuple[Path, ...], *, write: bool, as_json: bool) -> None:
    """Show what has to change in programs of the SageMaker SDK v2 or v1.

    PATH is a Python file, a notebook, or a directory of them. The changes are printed as a unified diff; then what
    needs no change, and what has no counterpart, with what to do instead. --write changes the lines of the diff.

    To run a program without a change, see python -m scriptmode.v2 --help.

    \b
    Example:
      scriptmode migrate train.ipynb
      scriptmode migrate notebooks launch.py --write
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    named = dict.fromkeys(file for path in paths for file in find_files(path))
    done = [_migrate(file, write=write) for file in named]
    files = [each for each in done if not isinstance(each, DataError)]
    errors = [str(each) for each in done if isinstance(each, DataError)]
    errors += [error for each in files for error in each.errors]
    if as_json:
        output.print_json({"files": [_to_dict(each) for each in files], "errors": errors})
    else:
        _print(files, is_written=write)
        for error in errors:
            output.echo(f"scriptmode migrate: {error}", err=True)
    if errors:
        click.get_current_context().exit(1)


def _migrate(path: Path, *, write: bool) -> MigratedFile | DataError:
    """Return what has to change in a file, which is changed if ``write`` says so, or why it cannot be done."""
    try:
        found = migrate_file(path)
        if write and found.is_changed:
            found.write()
    except DataError as error:
        return error
    return found


def _print(files: Sequence[MigratedFile], *, is_written: bool) -> None:
    changed = [each for each in files if each.is_changed]
    for each in changed:
        output.echo(each.diff())
    if using := [each for each in files if each.unchanged]:
        output.echo("No change needed:")
        for each in using:
            output.echo(f"  {each.path}: {', '.join(each.unchanged)}")
    missing: dict[str, list[str]] = {}
    for each in files:
        for location in each.missing:
            cell = f"cell {location.cell}: " if location.cell else ""
            missing.setdefault(location.advice, []).append(f"{each.path}:{location.line}: {cell}{location.name}")
    if missing:
        output.echo("No counterpart:")
    for advice, locations in missing.items():
        output.echo("\n    ".join([f"  {advice}:", *locations]))
    others = len([each for each in files if not (each.unchanged or each.missing)])
    what = f"{pluralize(len(changed), 'file')} {'changed' if is_written else 'to change'}"
    output.echo(f"{what}, {others} without sagemaker" + ("" if is_written or not changed else "; --write changes them"))


def _to_dict(found: MigratedFile) -> dict[str, Any]:
    missing = [
        {"line": each.line, "cell": each.cell or None, "name": each.name, "instead": each.advice}
        for each in found.missing
    ]
    return {"path": str(found.path), "diff": found.diff(), "unchanged": list(found.unchanged), "missing": missing}
