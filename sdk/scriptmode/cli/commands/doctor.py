"""``scriptmode doctor``."""

from __future__ import annotations

import click

from scriptmode.cli import output
from scriptmode.core.text.progress_line import ProgressLine
from scriptmode.doctor import examine, examine_each, line, summary

_COLOURS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command()
@click.option(
    "--platform",
    type=click.Choice(("local", "sagemaker", "slurm", "kubernetes")),
    help="Platform on which jobs are to run. [default: local]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the checks as a JSON list.")
def doctor(platform: str | None, as_json: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Check whether training jobs can run, and print how to fix problems.

    Problems prevent every job from starting, or are damaged files of a job. Warnings are about requirements of some
    jobs only, such as Docker. Each check is printed as soon as it is done; the import of TensorFlow comes last.
    With --platform slurm a step runs on a free node of each partition, and tests whether it shares files with this
    machine. With --platform kubernetes a pod runs a job of ten steps.

    Exit code: 0 if there are no problems; 1 if there is one.

    \b
    Example:
      scriptmode doctor
      scriptmode doctor --platform sagemaker
      scriptmode doctor --platform slurm
      scriptmode doctor --platform kubernetes
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    if as_json:
        checks = examine(platform=platform)
        output.print_json([check.to_dict() for check in checks])
    else:
        checks = []
        with ProgressLine() as progress:

            def waiting(names: tuple[str, ...]) -> None:
                progress.show(f"checking {', '.join(names)} ...")

            for check in examine_each(platform=platform, waiting=waiting):
                progress.clear()
                text = line(check)
                output.echo(output.coloured(check.outcome, _COLOURS[check.outcome]) + text[len(check.outcome) :])
                checks.append(check)
        output.echo(f"\n{summary(checks)}")
    if any(check.outcome == "problem" for check in checks):
        raise SystemExit(1)
