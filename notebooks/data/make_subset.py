"""Write the subset of Fashion-MNIST in this directory, from one ``.npz`` file with the full data set.

    python make_subset.py FULL.npz [FOLDER]

FULL.npz contains ``x_train, y_train, x_test, y_test`` (28 x 28 pixels, uint8). The subset is drawn without
replacement, with the same number of images from each of the ten classes, by a generator with a fixed seed: a second
run writes the same images. It needs only NumPy.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

SEED = 20170825  # The day Fashion-MNIST appeared; any fixed number would do.
CLASSES = 10
TRAIN_IMAGES = 10_000
TRAIN_PARTS = 4
EVAL_IMAGES = 2_000
EVAL_PARTS = 2


def balanced_parts(labels: np.ndarray, images: int, parts: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Draw the indices of `images` images and divide them into `parts` class-balanced parts."""
    per_class = images // CLASSES
    drawn = [generator.choice(np.flatnonzero(labels == label), per_class, replace=False) for label in range(CLASSES)]
    divided = [np.concatenate([indices[part::parts] for indices in drawn]) for part in range(parts)]
    return [generator.permutation(indices) for indices in divided]


def write_parts(folder: Path, x: np.ndarray, y: np.ndarray, parts: list[np.ndarray]) -> None:
    """Write ``part-0.npz``, ``part-1.npz``, ... with the arrays ``x`` [n, 28, 28] and ``y`` [n]."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, indices in enumerate(parts):
        np.savez_compressed(folder / f"part-{number}.npz", x=x[indices], y=y[indices])


def main(arguments: list[str]) -> int:
    """Write ``train/`` and ``eval/`` below the folder (default: fashion_mnist beside this file)."""
    if len(arguments) not in {1, 2}:
        print(__doc__, file=sys.stderr)
        return 2
    default = Path(__file__).with_name("fashion_mnist")
    folder = Path(arguments[1]) if len(arguments) == 2 else default
    generator = np.random.default_rng(SEED)
    with np.load(arguments[0]) as full:
        for channel, split, images, parts in (
            ("train", "train", TRAIN_IMAGES, TRAIN_PARTS),
            ("eval", "test", EVAL_IMAGES, EVAL_PARTS),
        ):
            x, y = full[f"x_{split}"], full[f"y_{split}"]
            write_parts(folder / channel, x, y, balanced_parts(y, images, parts, generator))
            print(f"{folder / channel}: {images} images in {parts} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
