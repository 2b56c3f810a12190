"""Functions that complete words in the shell: jobs, files and directories."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable

from click.shell_completion import CompletionItem

from scriptmode import ScriptmodeError, TrainingJob
from scriptmode.core.spec.service_values import UNREADABLE

if TYPE_CHECKING:
    import click


def complete_job(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of this machine's readable jobs that begin with ``incomplete``, newest first."""
    return [job["TrainingJobName"] for job in _list_jobs(incomplete) if is_readable(job)]


def complete_any_job(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names that `complete_job` returns, and those of jobs whose files are damaged."""
    return [job["TrainingJobName"] for job in _list_jobs(incomplete)]


def is_readable(job: Mapping[str, Any]) -> bool:
    """Return whether the files of a listed job can be read."""
    return bool(job["TrainingJobStatus"] != UNREADABLE)


def complete_running_job(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of this machine's jobs that have not ended."""
    running = ("InProgress", "Stopping")
    return [job["TrainingJobName"] for job in _list_jobs(incomplete) if job["TrainingJobStatus"] in running]


def complete_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return an item that makes the shell complete files and directories."""
    return [CompletionItem(incomplete, type="file")]


def complete_directory(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return an item that makes the shell complete directories."""
    return [CompletionItem(incomplete, type="dir")]


def complete_choice(*choices: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a completer for a fixed list of words."""
    return lambda _ctx, _param, incomplete: [word for word in choices if word.startswith(incomplete)]


def _list_jobs(start: str) -> list[dict[str, Any]]:
    # A message would appear in the middle of the typed line.
    before = logging.root.manager.disable
    logging.disable()
    try:
        jobs = TrainingJob.list("local", name_contains=start or None)
    except ScriptmodeError:
        return []
    finally:
        logging.disable(before)
    return [job for job in jobs if job["TrainingJobName"].startswith(start)]
