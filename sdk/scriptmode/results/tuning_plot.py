"""A tuning job as a Matplotlib figure: its objective by training job, and by each hyperparameter."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from scriptmode.core.spec.tuning_description import TunedJob, TuningDescription
from scriptmode.results import metric_plot

#: With positive values, an axis is logarithmic from this ratio of the greatest to the least on.
_WIDE_RATIO = 100.0


def draw(jobs: Sequence[TunedJob], tuning_job: TuningDescription, names: Sequence[str]) -> Any:
    """Draw training jobs that have an objective, at least one; return the ``matplotlib.figure.Figure``.

    ``names`` are those of the hyperparameters. Raises `MissingPackageError` where Matplotlib is not installed.
    """
    figure = metric_plot.create_figure(len(names) + 1)
    objective = [float(job.objective or 0) for job in jobs]
    first, *others = figure.subplots(len(names) + 1, squeeze=False)[:, 0]
    metric_plot.style_axes(first)
    numbers = range(1, len(jobs) + 1)
    best = list(accumulate(objective, max if tuning_job.is_maximized else min))
    first.plot(numbers, objective, "o", color=metric_plot.COLOURS[0], label="training job")
    first.step(numbers, best, where="post", color=metric_plot.COLOURS[1], label="best so far")
    first.set_title(tuning_job.metric, loc="left", fontsize="medium", color=metric_plot.TEXT)
    first.set_xlabel("number of the training job", color=metric_plot.TEXT)
    first.xaxis.get_major_locator().set_params(integer=True)
    legend = first.legend(frameon=False, fontsize="small")
    for text in legend.get_texts():
        text.set_color(metric_plot.TEXT)
    for axes, name in zip(others, names):
        metric_plot.style_axes(axes)
        _draw_hyperparameter(axes, [job.tuned.get(name) for job in jobs], objective)
        axes.set_xlabel(name, color=metric_plot.TEXT)
    return figure


def _draw_hyperparameter(axes: Any, values: list[Any], objective: list[float]) -> None:
    is_number = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    axes.plot(values if is_number else list(map(str, values)), objective, "o", color=metric_plot.COLOURS[0])
    if is_number and min(values) > 0 and max(values) / min(values) >= _WIDE_RATIO:
        axes.set_xscale("log")
