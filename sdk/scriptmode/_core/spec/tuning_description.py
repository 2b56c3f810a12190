"""A tuning job and its training jobs as values: what the service's descriptions say of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True)
class TunedJob:
    """One training job of a tuning job.

    Attributes:
        tuned: The hyperparameters that the search chose, decoded.
        objective: The last value of the objective; ``None`` while it is unknown.
    """

    name: str
    status: str
    tuned: Mapping[str, object]
    objective: float | None = None
    started: datetime | None = None
    ended: datetime | None = None
    failure_reason: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether the training job completed, failed or was stopped."""
        return self.status in ("Completed", "Failed", "Stopped")

    @property
    def seconds(self) -> float | None:
        """Seconds of training; ``None`` while they are unknown."""
        return (self.ended - self.started).total_seconds() if self.started and self.ended else None


@dataclass(frozen=True)
class TuningDescription:
    """A tuning job at one moment.

    Attributes:
        max_jobs: Number of its training jobs; ``None`` for all combinations of a grid.
        completed, running, failed, stopped: Numbers of its training jobs so far.
        seconds: Seconds from its creation to its end; ``None`` while it runs.
        response: The service's response.
    """

    name: str
    status: str
    metric: str
    is_maximized: bool
    strategy: str
    max_jobs: int | None
    max_parallel_jobs: int
    completed: int = 0
    running: int = 0
    failed: int = 0
    stopped: int = 0
    seconds: float | None = None
    best: TunedJob | None = None
    failure_reason: str = ""
    response: Any = None
