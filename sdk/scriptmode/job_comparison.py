"""Training jobs side by side: `compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode.errors import invalid
from scriptmode.job import TrainingJob
from scriptmode.request.parse import parse_description
from scriptmode.results.comparison import Comparison

if TYPE_CHECKING:
    from scriptmode.platforms.base import Platform


def compare(*jobs: TrainingJob | str, platform: Platform | str | None = None) -> Comparison:
    """Compare the settings and the metrics of training jobs.

    Args:
        jobs: At least two jobs, or names of jobs.
        platform: Where jobs are looked for by name, as `TrainingJob.attach` takes it.

    Returns:
        A comparison, whose text and notebook table have what differs first. ``plot(*names)`` draws the metrics of all
        jobs over one another as a ``matplotlib.figure.Figure``, and ``to_dict()`` returns the values.

    Raises:
        JobNotFoundError: For a name that no job has.
        SpecError: For fewer than two jobs.
    """
    if len(jobs) < 2:  # noqa: PLR2004 - a comparison needs two
        raise invalid("jobs", f"is {jobs!r}", "give at least two jobs, or their names")
    found = [TrainingJob.attach(each, platform=platform) if isinstance(each, str) else each for each in jobs]
    return Comparison([parse_description(job.describe()) for job in found], [job.metrics() for job in found])
