"""``scriptmode doctor``."""

from __future__ import annotations

from collections import Counter

import click

from scriptmode._core.text.progress_line import ProgressLine
from scriptmode.doctor import engine_checks, examine
from scriptmode_cli._program import output

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command()
@click.option(
    "--platform", type=click.Choice(("local", "sagemaker", *engine_checks())), default="local",
    help="Platform on which jobs are to run. [default: local]",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the checks as a JSON list.")
def doctor(platform: str, as_json: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Check whether training jobs can run, and print how to fix problems.

    Problems prevent every job from starting. Warnings are about requirements of some jobs only, such as Docker. Each
    check is printed as soon as it is done; the import of TensorFlow comes last. With --platform slurm a step runs on a
    free node of the partition that SCRIPTMODE_SLURM names, else the default one, and tests whether it shares files with
    this machine. With --platform kubernetes a pod runs a job.

    Exit code: 0 if there are no problems; 1 if there is one.

    \b
    Example:
      scriptmode doctor
      scriptmode doctor --platform sagemaker
      scriptmode doctor --platform slurm
      scriptmode doctor --platform kubernetes
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    checks = []
    with ProgressLine() as progress:
        for check in examine(platform=platform, waiting=lambda name: progress.show(f"checking {name} ...")):
            progress.clear()
            checks.append(check)
            if not as_json:
                outcome = check.outcome
                output.echo(output.coloured(outcome, _COLOURS[outcome]) + str(check)[len(outcome) :])
    counts = Counter(check.outcome for check in checks)
    if as_json:
        output.print_json([check.to_dict() for check in checks])
    else:
        output.echo("\n" + ", ".join(f"{outcome}: {counts[outcome]}" for outcome in _COLOURS))
    if counts["problem"]:
        raise SystemExit(1)
