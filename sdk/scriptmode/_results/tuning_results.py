"""The training jobs of a tuning job: rows, a table, a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scriptmode._core.request import tuning
from scriptmode._core.spec.tuning_description import TunedJob, TuningDescription
from scriptmode._core.text.terminal_text import align_columns
from scriptmode._results.metrics import import_pandas

#: Columns of a DataFrame after those of the hyperparameters, as in the SageMaker SDK v2.
_COLUMNS = (
    "TrainingJobName", "TrainingJobStatus", "FinalObjectiveValue", "TrainingStartTime", "TrainingEndTime",
    "TrainingElapsedTimeSeconds",
)  # fmt: skip


class TuningResults(list[dict[str, object]]):
    """The training jobs of a tuning job, one row each, in the order of their creation; displayed as a table.

    A row has the hyperparameters that the search chose, by name, then ``TrainingJobName``, ``TrainingJobStatus``,
    ``FinalObjectiveValue`` (``None`` where there is none), ``TrainingStartTime``, ``TrainingEndTime`` and
    ``TrainingElapsedTimeSeconds``.

    Args:
        description: The tuning job.
        jobs: Its training jobs.
    """

    def __init__(self, description: TuningDescription, jobs: Sequence[TunedJob]) -> None:
        super().__init__(map(_row, jobs))
        self._tuning_job, self._jobs = description, tuple(jobs)

    def description(self) -> Any:
        """Return the description of the tuning job: the response of DescribeHyperParameterTuningJob."""
        return dict(self._tuning_job.response)

    @property
    def tuning_ranges(self) -> dict[str, object]:
        """The ranges of the hyperparameters, by name, as the service describes them."""
        return tuning.ranges_of(self._tuning_job.response)

    def dataframe(self) -> Any:
        """Return a ``pandas.DataFrame`` of the rows.

        Raises:
            MissingPackageError: Where pandas is not installed, or cannot be imported.
        """
        pd = import_pandas("dataframe()", "use table(), which needs nothing")
        return pd.DataFrame(list(self), columns=[*self._tuned_names(), *_COLUMNS])

    to_pandas = dataframe

    def table(self) -> str:
        """Return the rows as text, a line for each training job, in columns as wide as their widest cell."""
        names = self._tuned_names()
        lines = [["training job", "status", self._tuning_job.metric, *names]]
        for job in self._jobs:
            cells = (job.status, job.objective, *(job.tuned.get(name) for name in names))
            lines.append([job.name, *map(format_value, cells)])
        return "\n".join(align_columns(lines))

    def _tuned_names(self) -> list[str]:
        return list(dict.fromkeys(name for job in self._jobs for name in job.tuned))

    def __repr__(self) -> str:
        return self.table() if self else "no training jobs yet"


def format_value(value: object) -> str:
    """Return a cell as text: numbers in six digits, ``-`` for what is unknown."""
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _row(job: TunedJob) -> dict[str, object]:
    values = (job.name, job.status, job.objective, job.started, job.ended, job.seconds)
    return {**job.tuned, **dict(zip(_COLUMNS, values))}
