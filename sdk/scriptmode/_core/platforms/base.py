"""The types of a training platform, which takes and returns the values of `scriptmode._core.spec`.

A platform is a training service: it answers CreateTrainingJob, DescribeTrainingJob and the rest. A job is a value here;
lists, tuning jobs and the response of a description have Amazon SageMaker's shapes. There are two,
``platforms.sagemaker`` and ``platforms.local``; ``platforms.registry`` chooses between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Union

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode._core.platforms.sagemaker import SageMakerPlatform
    from scriptmode_local import LocalPlatform

#: Both have the methods that the SDK calls, which raise only errors of `scriptmode.errors`.
Platform = Union["SageMakerPlatform", "LocalPlatform"]


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
