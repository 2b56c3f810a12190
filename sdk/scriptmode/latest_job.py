"""What an estimator shows of the job that it started last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scriptmode.errors import invalid

if TYPE_CHECKING:
    from scriptmode.job import TrainingJob
    from scriptmode.results.analytics import TrainingJobAnalytics


class LatestJob:
    """The properties and methods of an estimator that are about its latest job."""

    latest_training_job: TrainingJob | None

    @property
    def model_data(self) -> str | None:
        """URI of the latest job's ``model.tar.gz``; ``None`` while there is none."""
        return self.latest_training_job.model_data if self.latest_training_job else None

    @property
    def training_job_analytics(self) -> TrainingJobAnalytics:
        """The latest job's metrics; their ``dataframe()`` is a ``pandas.DataFrame``, as in the SageMaker SDK.

        Raises:
            SpecError: Before the first ``fit``.
        """
        return self._latest_job("training_job_analytics").analytics()

    def latest_job_debugger_artifacts_path(self) -> str | None:
        """Return the URI below which the latest job's debugger stores tensors; ``None`` where the debugger is off.

        Raises:
            SpecError: Before the first ``fit``.
        """
        return self._monitoring_output("latest_job_debugger_artifacts_path()", "debugger")

    def latest_job_profiler_artifacts_path(self) -> str | None:
        """Return the URI below which the latest job's profiler stores; ``None`` where the profiler is off.

        Raises:
            SpecError: Before the first ``fit``.
        """
        return self._monitoring_output("latest_job_profiler_artifacts_path()", "profiler")

    def latest_job_tensorboard_artifacts_path(self) -> str | None:
        """Return the URI below which the service stores the latest job's event files.

        ``None`` where ``tensorboard_output_config`` is off; `TrainingJob.tensorboard` shows the event files of each
        job.

        Raises:
            SpecError: Before the first ``fit``.
        """
        return self._monitoring_output("latest_job_tensorboard_artifacts_path()", "tensorboard")

    def _monitoring_output(self, requested: str, tool: str) -> str | None:
        from scriptmode.core.request.parse import monitoring_output

        return monitoring_output(self._latest_job(requested).describe(), tool)

    def _latest_job(self, requested: str) -> TrainingJob:
        if self.latest_training_job is None:
            raise invalid("latest_training_job", f"is None, and {requested} is about it", "call fit first, or attach")
        return self.latest_training_job
