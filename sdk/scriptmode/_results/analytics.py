"""A job's metrics in the form of the SageMaker SDK v2's ``TrainingJobAnalytics``."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from itertools import count
from typing import Any

from scriptmode._core.spec.arguments import texts
from scriptmode._results.metrics import Metrics, import_pandas

_COLUMNS = ["timestamp", "metric_name", "value"]


class TrainingJobAnalytics:
    """The values of a job's metrics as a table of ``timestamp``, ``metric_name`` and ``value``.

    Args:
        name: The job's name.
        read: Returns the job's metrics so far.
        metric_names: The metrics of the table, in order; by default all that have values.
    """

    def __init__(self, name: str, read: Callable[[], Metrics], metric_names: Collection[str] | None = None) -> None:
        self.name = name
        self._read = read
        self._metric_names = texts("metric_names", metric_names)
        self._dataframe: Any = None

    def __repr__(self) -> str:
        return f"<TrainingJobAnalytics of {self.name}>"

    def dataframe(self, force_refresh: bool = False) -> Any:  # noqa: FBT001, FBT002 - positional in the SageMaker SDK
        """Return the metrics so far; later calls return the same table.

        Args:
            force_refresh: Whether to read the metrics again.

        Returns:
            A ``pandas.DataFrame`` with a row for each value, metric by metric. ``timestamp`` is the number of seconds
            since the metric's first value; of a job of this machine, whose log has no times, it is the number of the
            value on its host, from 0 on. A metric without values has no rows.

        Raises:
            SpecError: For a metric that was not defined.
            MissingPackageError: Where pandas is not installed, or cannot be imported.
        """
        pd = import_pandas("dataframe()", "use latest_training_job.metrics(), which needs nothing")
        if force_refresh or self._dataframe is None:
            self._dataframe = pd.DataFrame(list(self._rows()), columns=_COLUMNS)
        return self._dataframe

    def export_csv(self, filename: str | os.PathLike[str]) -> None:
        """Write the table to a CSV file; raises what `dataframe` raises."""
        self.dataframe().to_csv(filename)

    def clear_cache(self) -> None:
        """Clear the table, so that the next call of `dataframe` reads the metrics again."""
        self._dataframe = None

    def _rows(self) -> Iterator[tuple[float, str, float]]:
        metrics = self._read()
        for name in self._metric_names or metrics.names:
            if name in metrics.definitions and name not in metrics.names:
                continue
            rows = list(metrics.of(name))
            if all(row["timestamp"] is not None for row in rows):
                rows.sort(key=lambda row: row["timestamp"])
                first = rows[0]["timestamp"]
                yield from (((row["timestamp"] - first).total_seconds(), name, row["value"]) for row in rows)
            else:
                numbers: defaultdict[str | None, Iterator[int]] = defaultdict(count)
                yield from ((float(next(numbers[row["host"]])), name, row["value"]) for row in rows)
