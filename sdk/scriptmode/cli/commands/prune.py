"""``scriptmode prune``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from scriptmode import DataError
from scriptmode.cli import output
from scriptmode.cli.options import json_option
from scriptmode.cli.values import convert_age
from scriptmode.core.platforms.registry import local_platform
from scriptmode.core.text.messages import format_bytes, pluralize

if TYPE_CHECKING:
    from scriptmode.platforms.local.pruning import PruneReport

#: The key of each kind in the output of --json.
_KEYS = {
    "job": "jobs",
    "tuning job": "tuning_jobs",
    "source": "sources",
    "cached download": "cached_downloads",
    "cached environment": "cached_environments",
}


@click.command()
@click.option(
    "--older-than",
    callback=convert_age,
    required=True,
    metavar="AGE",
    help="Delete what ended, or was used last, before this time: a number and s, min, h, d or w, such as 12h or 7d.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be deleted, and delete nothing.")
@json_option
def prune(*, older_than: float, dry_run: bool, as_json: bool) -> None:
    """Delete old jobs of this machine that ended, sources that no job needs, and cached downloads and environments.

    A running job is never deleted, nor is the environment of requirements that it uses, or a source that was used in
    the last hour. Files that a job wrote to its own output_path outside the data directory are kept.

    Exit code: 0 if everything was deleted; 1 if a part of it could not be.

    \b
    Example:
      scriptmode prune --older-than 7d --dry-run
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    report = local_platform().prune(older_than, dry_run=dry_run)
    if as_json:
        found = {
            key: [{"name": each.name, "bytes": each.bytes} for each in report.removed if each.kind == kind]
            for kind, key in _KEYS.items()
        }
        output.print_json({**found, "bytes": report.bytes, "dry_run": dry_run})
    else:
        verb = "would delete" if dry_run else "deleted"
        for each in report.removed:
            output.echo(f"{verb} {each.kind} {each.name} ({format_bytes(each.bytes)})")
        output.echo(_summary(report, dry_run=dry_run))
    for problem in report.problems[:-1]:
        output.echo(f"scriptmode: {problem}", err=True)
    if report.problems:
        raise DataError(report.problems[-1].text, advice=report.problems[-1].advice)


def _summary(report: PruneReport, *, dry_run: bool) -> str:
    if not report.removed:
        return "nothing to delete"
    counts = Counter(each.kind for each in report.removed)
    parts = ", ".join(pluralize(counts[kind], kind) for kind in _KEYS if counts[kind])
    return f"{'would free' if dry_run else 'freed'} {format_bytes(report.bytes)}: {parts}"
