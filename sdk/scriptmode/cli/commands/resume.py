"""``scriptmode resume``."""

from __future__ import annotations

import click

from scriptmode.cli import output
from scriptmode.cli.options import json_option
from scriptmode.core.platforms.registry import local_platform


@click.command()
@json_option
def resume(*, as_json: bool) -> None:
    """Start the jobs of this machine again that were interrupted, such as by a restart of the machine.

    These are the jobs with max_retry_attempts left, and spot training within max_wait: they go on from their
    checkpoints. Every command that reads such a job starts it again; this one reads all, also tuning jobs. `scriptmode
    serve` does so at its start.

    Exit code: 0.

    \b
    Example:
      scriptmode resume
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    names = local_platform().resume()
    lines = (f"training job {name} starts again; follow it: scriptmode logs -f {name}" for name in names)
    text = "\n".join(lines) or "no training job of this machine waits to be started again"
    output.print_result(names, text, as_json=as_json)
