"""Following a job from the command line: in the live view, in plain lines, or silently."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, TypeVar

import click

from scriptmode.patience import goes_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode import TrainingJob

_Function = TypeVar("_Function", bound=Callable[..., Any])


def plain(function: _Function) -> _Function:
    """Add --plain."""
    return click.option("--plain", "is_plain", is_flag=True, help="Lines alone, no live view.")(function)


def follow(job: TrainingJob, *, is_plain: bool) -> None:
    """Follow a job to its end; raises how it ended, unless it completed."""
    job.follow(live=False if is_plain else None)


@contextmanager
def coming_back(job: TrainingJob, *, follow: bool = True) -> Iterator[None]:
    """Say on Ctrl-C how to come back to a job that goes on."""
    try:
        yield
    except KeyboardInterrupt:
        if follow:
            click.echo(f"\n{goes_on(job.name)}. Stop it: scriptmode stop {job.name}", err=True)
        raise
