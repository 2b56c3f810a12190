"""``scriptmode migrate PATH...``."""

from __future__ import annotations

from pathlib import Path

import click

from scriptmode import DataError
from scriptmode._core.text.messages import pluralize
from scriptmode.v2._migrated_file import MigratedFile, find_files, migrate_file
from scriptmode_cli._program import output


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--write", is_flag=True, help="Change the files.")
def migrate(paths: tuple[Path, ...], *, write: bool) -> None:
    """Show what has to change in programs of the SageMaker SDK v2 or v1.

    PATH is a Python file, a notebook, or a directory of them. The changes of the imports are printed as a unified diff;
    then what is not included, with what to do instead. --write makes the changes.

    To run a program without a change, see python -m scriptmode.v2 --help.

    \b
    Example:
      scriptmode migrate notebooks launch.py --write
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    files: list[MigratedFile] = []
    failed = False
    for file in dict.fromkeys(file for path in paths for file in find_files(path)):
        try:
            migrated = migrate_file(file)
            if write and migrated.new != migrated.old:
                migrated.write()
            files.append(migrated)
        except DataError as error:  # noqa: PERF203 - the other files must be changed too
            failed = True
            output.echo(f"scriptmode: {error}", err=True)
    _print(files, is_written=write)
    if failed:
        click.get_current_context().exit(1)


def _print(files: list[MigratedFile], *, is_written: bool) -> None:
    changed = [file for file in files if file.new != file.old]
    for file in changed:
        output.echo(file.diff())
    advices: dict[str, list[str]] = {}
    for use in (use for file in files for use in file.not_included):
        advices.setdefault(use.advice, []).append(f"{use.place}: {use.name}")
    if advices:
        output.echo("Not included:")
    for advice, uses in advices.items():
        output.echo("\n    ".join([f"  {advice}:", *uses]))
    what = f"{pluralize(len(changed), 'file')} {'changed' if is_written else 'to change'}"
    output.echo(what + ("" if is_written or not changed else "; --write changes them"))
