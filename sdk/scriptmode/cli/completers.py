"""Functions that complete words in the shell: jobs, their hosts and metrics, files, and the values of options."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Callable

import click
from click.shell_completion import CompletionItem

from scriptmode import ScriptmodeError, TrainingJob
from scriptmode.core.spec.service_values import UNREADABLE

_Completer = Callable[[click.Context, click.Parameter, str], Any]


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


def complete_metric(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the metrics of the job that the command line names."""
    found = _query_job(ctx, lambda job: job.describe().get("AlgorithmSpecification", {}).get("MetricDefinitions", []))
    return _filter_prefix(incomplete, (each["Name"] for each in found))


def complete_host(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the hosts of the job that the command line names."""
    return _filter_prefix(incomplete, _query_job(ctx, lambda job: job.hosts))


def complete_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return an item that makes the shell complete files and directories."""
    return [CompletionItem(incomplete, type="file")]


def complete_directory(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return an item that makes the shell complete directories."""
    return [CompletionItem(incomplete, type="dir")]


def complete_channel(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the files and directories that complete the value of ``NAME=VALUE``.

    zsh and fish complete the whole word. bash splits it at ``=`` and completes the value alone (`ProgramCommand`).
    """
    name, separator, value = incomplete.partition("=")
    if not separator or "://" in value:
        return []
    typed, _, start = value.rpartition("/")
    directory = f"{typed}/" if "/" in value else ""
    try:
        found = sorted(Path(directory or ".").iterdir())
    except OSError:
        return []
    ends = ((each, "/" if each.is_dir() else "") for each in found if each.name.startswith(start))
    return [f"{name}={directory}{each.name}{end}" for each, end in ends]


def complete_choice(*choices: str) -> _Completer:
    """Return a completer for a fixed list of words."""
    return lambda _ctx, _param, incomplete: _filter_prefix(incomplete, choices)


def _filter_prefix(start: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(start)]


def _list_jobs(start: str) -> list[dict[str, Any]]:
    found = _without_errors(lambda: TrainingJob.list("local", name_contains=start or None))
    return [job for job in found if job["TrainingJobName"].startswith(start)]


def _query_job(ctx: click.Context, query: Callable[[TrainingJob], list[Any]]) -> list[Any]:
    """Return the result of a query on the job that the command line names; ``[]`` for a job of another platform."""

    def run() -> list[Any]:
        # While the value of an option is completed, click has not parsed the arguments yet.
        name = ctx.params.get("job") or next(iter(ctx.args), None)
        if ctx.params.get("last"):
            name = next((job["TrainingJobName"] for job in TrainingJob.list("local") if is_readable(job)), None)
        return query(TrainingJob.attach(name, platform="local")) if name else []

    return _without_errors(run)


def _without_errors(query: Callable[[], list[Any]]) -> list[Any]:
    """Return the result of a query, ``[]`` on an error: its message would appear in the middle of the typed line."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        return query()
    except ScriptmodeError:
        return []
    finally:
        logging.disable(before)
