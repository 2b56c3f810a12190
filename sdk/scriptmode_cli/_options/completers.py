"""Completion of the names of jobs in the shell. Options that are paths have click's own type, which completes them."""

from __future__ import annotations

import click

from scriptmode import ScriptmodeError, TrainingJob


def complete_job(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of this machine's jobs that begin with ``incomplete``, newest first."""
    import logging

    # A message would appear in the middle of the typed line.
    before = logging.root.manager.disable
    logging.disable()
    try:
        names = [job["TrainingJobName"] for job in TrainingJob.list("local", name_contains=incomplete or None)]
    except ScriptmodeError:
        return []
    finally:
        logging.disable(before)
    return [name for name in names if name.startswith(incomplete)]
