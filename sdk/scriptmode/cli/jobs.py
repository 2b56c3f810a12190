"""Find the job that a command line names."""

from __future__ import annotations

from scriptmode.job import TrainingJob
from scriptmode.platforms import holding


def job_named(name: str) -> TrainingJob:
    """Return a job of this machine, else of Amazon SageMaker."""
    return TrainingJob(name, holding(name))
