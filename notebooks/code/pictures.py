"""Figures for the notebooks: predictions of a model, and curves of a training.

Needs Matplotlib. A notebook shows each figure below the cell that draws it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from images import Images

#: Names of Fashion-MNIST's classes 0 to 9.
FASHION = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
COLUMNS = 6


def draw_predictions(shown: Images, logits: np.ndarray, names: Sequence[str] = FASHION) -> None:
    """Draw images with the predicted class and its probability, in red if the prediction is wrong."""
    rows = -(-len(shown) // COLUMNS)
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(2 * COLUMNS, 2.3 * rows), squeeze=False)
    for each in axes.flat:
        each.axis("off")
    for each, pixels, label, scores in zip(axes.flat, shown.x, shown.y, logits):
        chances = np.exp(scores - scores.max())
        taken = int(chances.argmax())
        text = f"{names[taken]} {chances[taken] / chances.sum():.0%}"
        right = taken == label
        each.set_title(text if right else f"{text}\nis {names[label]}", color="black" if right else "red", fontsize=9)
        each.imshow(pixels, cmap="gray_r", vmin=0, vmax=255)
    figure.tight_layout()
    plt.show()


def draw_lines(lines: Mapping[str, Sequence[float]], positions: Sequence[int], *, label: str) -> None:
    """Draw lines over common x values, named by `label`; a line may have fewer values."""
    draw_curves({name: (positions[: len(values)], values) for name, values in lines.items()}, label=label)


def draw_curves(curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, label: str) -> None:
    """Draw lines that have their own x values."""
    figure, axes = plt.subplots(figsize=(7, 3.5))
    for above, (name, (positions, values)) in enumerate(curves.items()):
        # Lower lines are wider, so that all of several equal lines are visible.
        width = 1.5 + 4 * (len(curves) - 1 - above) / len(curves)
        axes.plot(positions, values, marker="o", linewidth=width, label=name)
    axes.set_xlabel(label)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    plt.show()


def draw_bars(panels: Mapping[str, Mapping[str, Mapping[str, float | None]]]) -> None:
    """Draw a panel for each quantity, a group of bars for each case, a bar for each name; ``None`` has no bar."""
    figure, axes = plt.subplots(1, len(panels), figsize=(4.5 * len(panels), 3.5), squeeze=False)
    for each, (quantity, cases) in zip(axes[0], panels.items()):
        names = list(dict.fromkeys(name for case in cases.values() for name in case))
        for index, name in enumerate(names):
            x = [each_x + index / (len(names) + 1) for each_x in range(len(cases))]
            bars = each.bar(x, [case.get(name) or 0 for case in cases.values()], 1 / (len(names) + 1), label=name)
            each.bar_label(bars, ["-" if case.get(name) is None else "" for case in cases.values()])
        each.set_xticks([each_x + (len(names) - 1) / (len(names) + 1) / 2 for each_x in range(len(cases))], list(cases))
        each.set_title(quantity)
    axes[0][0].legend()
    figure.tight_layout()
    plt.show()
