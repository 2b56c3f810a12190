"""What the shell completes: jobs and what is theirs, files and folders, the words that an option takes."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

from click.shell_completion import CompletionItem

from scriptmode import ScriptmodeError, TrainingJob

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import click

_Completes = Callable[["click.Context", "click.Parameter", str], Any]


def complete_job(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's form
    """Return the names of this machine's jobs that begin with what is there, newest first; only those to be read."""
    return [job["TrainingJobName"] for job in _listed(incomplete) if is_readable(job)]


def complete_any_job(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - likewise
    """Return the names that `complete_job` returns, and those of jobs whose files are damaged."""
    return [job["TrainingJobName"] for job in _listed(incomplete)]


def is_readable(job: Mapping[str, Any]) -> bool:
    """Return whether the files of a listed job can be read."""
    return bool(job["TrainingJobStatus"] != "Unreadable")


def complete_running_job(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - likewise
    """Give those of `complete_job` that have not ended."""
    running = ("InProgress", "Stopping")
    return [job["TrainingJobName"] for job in _listed(incomplete) if job["TrainingJobStatus"] in running]


def complete_metric(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - likewise
    """Give the metrics of the job that the line names."""
    found = _asked(ctx, lambda job: job.describe().get("AlgorithmSpecification", {}).get("MetricDefinitions", []))
    return _beginning(incomplete, (each["Name"] for each in found))


def complete_host(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - likewise
    """Give the hosts of the job that the line names."""
    return _beginning(incomplete, _asked(ctx, lambda job: job.hosts))


def complete_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - likewise
    """Have the shell complete files and folders."""
    return [CompletionItem(incomplete, type="file")]


def complete_directory(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001 - likewise
    """Have the shell complete folders."""
    return [CompletionItem(incomplete, type="dir")]


def complete_channel(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - likewise
    """Give the files and folders that ``NAME=`` may go on with; bash asks for what comes after it alone."""
    name, separator, place = incomplete.partition("=")
    if not separator or "://" in place:
        return []
    typed, _, start = place.rpartition("/")
    folder = f"{typed}/" if "/" in place else ""
    try:
        found = sorted(Path(folder or ".").iterdir())
    except OSError:
        return []
    ends = ((each, "/" if each.is_dir() else "") for each in found if each.name.startswith(start))
    return [f"{name}={folder}{each.name}{end}" for each, end in ends]


def complete_choice(*words: str) -> _Completes:
    """Give those of some words that begin with what is there."""
    return lambda _ctx, _param, incomplete: _beginning(incomplete, words)


def _beginning(start: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(start)]


def _listed(start: str) -> list[dict[str, Any]]:
    found = _quietly(lambda: TrainingJob.list("local", name_contains=start or None))
    return [job for job in found if job["TrainingJobName"].startswith(start)]


def _asked(ctx: click.Context, question: Callable[[TrainingJob], list[Any]]) -> list[Any]:
    """Ask the job that the line names; of one of another machine nothing is known."""

    def ask() -> list[Any]:
        # Where an option's value is yet to come, click has read no argument.
        name = ctx.params.get("job") or next(iter(ctx.args), None)
        if ctx.params.get("last"):
            name = next((job["TrainingJobName"] for job in TrainingJob.list("local") if is_readable(job)), None)
        return question(TrainingJob.attach(name, platform="local")) if name else []

    return _quietly(ask)


def _quietly(ask: Callable[[], list[Any]]) -> list[Any]:
    """Ask; nobody who presses a key wanted an error or a warning."""
    before = logging.root.manager.disable
    logging.disable()
    try:
        return ask()
    except ScriptmodeError:
        return []
    finally:
        logging.disable(before)
