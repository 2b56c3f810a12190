"""The protocol of a platform's tuning jobs: the service's requests and responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class TuningService(Protocol):
    """The tuning jobs of a platform, in the service's shapes. Its methods raise only errors of `scriptmode.errors`."""

    def validate(self, request: Mapping[str, Any]) -> None:
        """Raise `RequestError` with all reasons why a CreateHyperParameterTuningJob request would be refused."""

    def create(self, request: Mapping[str, Any]) -> str:
        """Start a tuning job from a CreateHyperParameterTuningJob request; return its ARN."""

    def describe(self, name: str) -> dict[str, Any]:
        """Return DescribeHyperParameterTuningJob's response; raise `JobNotFoundError`."""

    def stop(self, name: str) -> None:
        """Request that a tuning job and its training jobs stop. One that ended is left as it is."""

    def training_jobs(self, name: str) -> list[dict[str, Any]]:
        """Return the HyperParameterTrainingJobSummary objects of a tuning job, in the order of their creation."""

    def list(self) -> list[dict[str, Any]]:
        """Return HyperParameterTuningJobSummary objects, newest first."""
