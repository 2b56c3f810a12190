"""Completion of the names of jobs in the shell. Options that are paths have click's own type, which completes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scriptmode import ScriptmodeError, TrainingJob
from scriptmode._core.spec.service_values import UNREADABLE

if TYPE_CHECKING:
    import click


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


def is_readable(job: Mapping[str, Any]) -> bool:
    """Return whether the files of a listed job can be read."""
    return bool(job["TrainingJobStatus"] != UNREADABLE)
