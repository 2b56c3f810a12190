"""Training jobs side by side: their settings, the last values of their metrics, and a figure of these."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scriptmode.core.spec.inputs import FileSystemInput, TrainingInput
from scriptmode.core.spec.job_description import JobDescription
from scriptmode.core.text.messages import did_you_mean, format_duration
from scriptmode.core.text.terminal_text import align_columns
from scriptmode.errors import DataError, SpecError
from scriptmode.results.metrics import Metrics
from scriptmode_runtime import contract

#: Characters of a source's digest that are shown.
_DIGITS = 12


@dataclass(frozen=True)
class Row:
    """One setting or metric: its values by job, ``None`` for a job without it."""

    kind: str
    name: str
    values: tuple[str | float | None, ...]

    @property
    def differs(self) -> bool:
        """Whether the jobs do not all have the same value."""
        return len(set(self.values)) > 1


class Comparison:
    """Jobs side by side; its text and a notebook show first what differs, then what is the same."""

    def __init__(self, jobs: Sequence[JobDescription], metrics: Sequence[Metrics]) -> None:
        self.jobs = tuple(each.name for each in jobs)
        self._metrics = metrics
        settings: list[Mapping[str, str | float]] = [describe_settings(each) for each in jobs]
        lasts: list[Mapping[str, str | float]] = [{name: _last(each, name) for name in each.names} for each in metrics]
        self.rows = (*_rows("setting", settings), *_rows("metric", lasts))

    def to_dict(self) -> dict[str, object]:
        """Return the comparison as JSON can represent it: values by the name of the setting or metric, then by job.

        ``different`` has the names of those that differ, of settings and metrics apart: a hyperparameter may have the
        name of a metric.
        """
        return {
            "jobs": list(self.jobs),
            "settings": self._values("setting"),
            "metrics": self._values("metric"),
            "different": {
                f"{kind}s": [row.name for row in self.rows if row.kind == kind and row.differs]
                for kind in ("setting", "metric")
            },
        }

    def _values(self, kind: str) -> dict[str, dict[str, str | float | None]]:
        return {row.name: dict(zip(self.jobs, row.values)) for row in self.rows if row.kind == kind}

    def table(self) -> list[tuple[str, ...]]:
        """Return the rows that differ as texts, below a head with the names of the jobs."""
        return [("", *self.jobs), *((row.name, *map(_text, row.values)) for row in self.rows if row.differs)]

    def same(self) -> list[tuple[str, str]]:
        """Return the names and values of the rows that are the same in all jobs."""
        return [(row.name, _text(row.values[0])) for row in self.rows if not row.differs]

    def plot(self, *names: str) -> Any:
        """Draw metrics of all jobs over one another, and return the ``matplotlib.figure.Figure``.

        Args:
            names: The metrics to draw; by default all of them.

        Raises:
            SpecError: For a metric that no job has.
            DataError: Where no job has values of metrics.
            MissingPackageError: Where Matplotlib is not installed.
        """
        from scriptmode.results import metric_plot

        known = [row.name for row in self.rows if row.kind == "metric"]
        if not known:
            raise DataError(
                f"training jobs {', '.join(self.jobs)} have no values of metrics",
                advice="give metric_definitions to the next job",
            )
        for name in names:
            if name not in known:
                raise SpecError(f"no job has a metric {name!r}", argument="names", advice=did_you_mean(name, known))
        drawn: dict[str, list[Any]] = {name: [] for name in names or known}
        for job, metrics in zip(self.jobs, self._metrics):
            is_single = len(metrics.hosts) < 2  # noqa: PLR2004 - two hosts need their names
            for row in metrics:
                if row["metric_name"] in drawn:
                    label = job if is_single else f"{job} {row['host']}"
                    drawn[row["metric_name"]].append({**row, "host": label})
        return metric_plot.draw(drawn, with_mean=False)

    def __str__(self) -> str:
        lines = align_columns(self.table())
        if same := self.same():
            lines += ["", "the same:", *align_columns(same)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self.table())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def describe_settings(description: JobDescription) -> dict[str, str]:
    """Return a job's settings by name, without secrets; hyperparameters have their own names."""
    job, resources = description.job, description.job.resources
    switches = (each for each in contract.DISTRIBUTION_SWITCHES if contract.enabled(job.parameter(each)))
    seconds = description.training_seconds
    found = {
        "status": str(description.status),
        "training time": "" if seconds is None else format_duration(seconds),
        "hosts": f"{len(description.hosts)} x {', '.join(sorted(set(resources.types)))}",
        "distribution": next((contract.STRATEGIES[each] for each in switches), ""),
        "script": job.program,
        "source": _digest(job.source_uri or ""),
        "image": job.algorithm.image_uri or "",
        **{f"input {channel.name}": _location(channel.source) for channel in job.channels},
    }
    for name, text in job.hyperparameters.items():
        if not name.startswith(contract.RESERVED_PREFIX):
            value = contract.decode(text)
            shown = value if isinstance(value, str) else text
            # A hyperparameter may have the name of a setting.
            key = f"hyperparameter {name}" if name in found else name
            found[key] = contract.MASK if value not in ("", None) and contract.is_secret(name, value) else shown
    return {name: contract.without_userinfo(value) for name, value in found.items() if value}


def _digest(uri: str) -> str:
    """Return what identifies a source: the digest in its URI, else the URI."""
    part = uri.rstrip("/").rpartition("/")[0].rpartition("/")[2]
    return part[:_DIGITS] if len(part) == 64 and part.isalnum() else uri  # noqa: PLR2004 - digits of SHA-256


def _location(source: object) -> str:
    if isinstance(source, TrainingInput):
        return source.s3_data
    if isinstance(source, FileSystemInput):
        return f"{source.file_system_type} {source.file_system_id}:{source.directory_path}"
    return type(source).__name__


def _last(metrics: Metrics, name: str) -> float:
    """Return the mean of the hosts' last values of a metric."""
    values = {row.get("host"): float(row["value"]) for row in metrics if row["metric_name"] == name}
    return sum(values.values()) / len(values)


def _rows(kind: str, values: Sequence[Mapping[str, str | float]]) -> list[Row]:
    names = dict.fromkeys(name for each in values for name in each)
    return [Row(kind, name, tuple(each.get(name) for each in values)) for name in names]


def _text(value: str | float | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.6g}"
