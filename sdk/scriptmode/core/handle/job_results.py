"""What a training job has produced, in the forms that its handle offers: metrics, event files, the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scriptmode.core.text.tracebacks import hide_frames
from scriptmode.errors import DataError, ScriptmodeError

if TYPE_CHECKING:
    import os
    from collections.abc import Collection
    from pathlib import Path

    from scriptmode.core.platforms.base import Platform
    from scriptmode.core.spec.job_description import JobDescription
    from scriptmode.results.analytics import TrainingJobAnalytics
    from scriptmode.results.metrics import Metrics
    from scriptmode.results.tensorboard import TensorBoard


@hide_frames(ScriptmodeError)
class JobResults:
    """The results of a training job, which has a name on a platform."""

    name: str
    platform: Platform

    def _description(self) -> JobDescription:
        """Return the description of the job."""
        raise NotImplementedError

    def metrics(self) -> Metrics:
        """Return the metrics so far.

        Returns:
            Rows of ``metric_name``, ``value``, ``timestamp`` and ``host``, displayed as a summary of each metric. On
            Amazon SageMaker each row is the average of one minute (of 5 minutes after 15 days, of an hour after 63
            days); on this machine each row is one line of the log, has no time, and has a ``step`` and an ``epoch``
            where the line names them.
        """
        from scriptmode.results import metrics

        description = self._description()
        found = self.platform.metrics(description.response)
        return metrics.to_metrics(found, description.job.algorithm.metric_definitions)

    def analytics(self, metric_names: Collection[str] | None = None) -> TrainingJobAnalytics:
        """Return the metrics in the form of the SageMaker SDK's ``TrainingJobAnalytics``; `metrics` has more columns.

        Args:
            metric_names: The metrics; by default all that have values.

        Returns:
            An object whose ``dataframe()`` is a ``pandas.DataFrame`` of ``timestamp``, ``metric_name`` and ``value``.

        Raises:
            SpecError: For a text in place of a list of names.
        """
        from scriptmode.results.analytics import TrainingJobAnalytics

        return TrainingJobAnalytics(self.name, self.metrics, metric_names)

    def plot(self, *names: str) -> Any:
        """Draw metrics by step, epoch or time, with a line for each host and the mean of the hosts.

        Args:
            names: The metrics to draw; by default all of them.

        Returns:
            A ``matplotlib.figure.Figure``, which a notebook displays.

        Raises:
            SpecError: For a metric that was not defined.
            DataError: For a metric without values so far.
            MissingPackageError: Where Matplotlib is not installed.
        """
        return self.metrics().plot(*names)

    def tensorboard(self, port: int | None = None) -> TensorBoard:
        """Start TensorBoard on the event files that the job writes with ``tf.summary``.

        It reads the hosts' output, model and checkpoint directories, and directories of this machine that
        hyperparameters name (``job-dir``, ``model_dir``). It is updated while the job runs on this machine; of a job
        elsewhere it shows the artifacts.

        Args:
            port: The port of 127.0.0.1 to listen on; by default a free one.

        Returns:
            The server, once it answers at its ``url``; a notebook displays it. It ends with ``close()``, at the end of
            a ``with`` block, or with this process.

        Raises:
            MissingPackageError: Where TensorBoard is not installed.
            DataError: For a job without event files.
        """
        from scriptmode.results import tensorboard

        return tensorboard.start_tensorboard(self.platform, self.name, port)

    @property
    def model(self) -> Path:
        """The directory with the unpacked model, downloaded into the data directory at the first access.

        Raises:
            DataError: While there is no model, and for an empty one.
        """
        from scriptmode.results.artifacts import download_cached

        description = self._description()
        folder = download_cached(self.platform, description, "model", self._model_uri(description))
        if not any(folder.iterdir()):
            what = f"training job {self.name} is {description.status} and left an empty model"
            raise DataError(what, "have the script write to the directory that SM_MODEL_DIR names")
        return folder

    def download_model(self, folder: str | os.PathLike[str], *, extract: bool = True) -> Path:
        """Download the model, whole or not at all.

        Args:
            folder: The directory to create; it may exist if it is empty.
            extract: Whether to unpack the archive. Members that point outside the directory are refused.

        Returns:
            The directory, as an absolute path.

        Raises:
            DataError: While there is no model, and for a directory that is not empty.
        """
        from scriptmode.results.artifacts import download

        return download(self.platform, self._model_uri(self._description()), folder, extract=extract)

    def _model_uri(self, description: JobDescription) -> str:
        if not description.model_uri:
            what = f"training job {self.name} is {description.status} and has no model"
            raise DataError(what, "look at its log" if description.has_ended else "wait for it to complete")
        return description.model_uri
