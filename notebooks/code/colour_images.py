"""Create color images of CIFAR's size from grayscale images, as TFRecord files.

python colour_images.py FOLDER TARGET [--files N] [--images N]

FOLDER contains the channels ``train`` and ``eval`` with .npz files of 28 x 28 images, like the Fashion-MNIST subset
in this project. TARGET gets the same channels with images of 32 x 32 x 3. Each article gets a random color, is
shifted by up to four pixels and placed on a colored texture with stripes: as in photographs, neither position nor
brightness separates it from the background. CIFAR-10 itself is not part of the project; its images have this shape
and the same number of classes. The output is the same each time.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import hyperparameters
import images
import numpy as np

# Show only errors of TensorFlow, which reads this when it is imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

SIZE = 32
#: Size of the textures' coarsest grain, in pixels.
GRAIN = 8
#: Brightness of articles and of the background; the ranges overlap.
ARTICLE, GROUND = (120, 256), (0, 150)


def coloured(grey: images.Images, seed: int) -> images.Images:
    """Return the images in color, shifted and on textures; the result depends only on the seed."""
    chance = np.random.default_rng(seed)
    count = len(grey)
    cover = _moved(grey.x, chance)[..., np.newaxis].astype(np.float32) / 255
    dye = chance.integers(*ARTICLE, (count, 1, 1, 3)).astype(np.float32)
    mixed = cover * dye + (1 - cover) * _ground(count, chance)
    return images.Images(mixed.astype(np.uint8), grey.y)


def _moved(grey: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Place each image of 28 x 28 at a random position on one of 32 x 32."""
    rest = SIZE - grey.shape[1] + 1
    result = np.zeros((len(grey), SIZE, SIZE), np.uint8)
    positions = chance.integers(0, rest, (len(grey), 2))
    for image, pixels, (top, left) in zip(result, grey, positions):
        image[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
    return result


def _ground(count: int, chance: np.random.Generator) -> np.ndarray:
    """Return backgrounds, float32 [count, 32, 32, 3]: two colors in coarse grains with stripes over them."""
    colours = chance.integers(*GROUND, (2, count, 1, 1, 3)).astype(np.float32)
    grains = chance.random((count, SIZE // GRAIN, SIZE // GRAIN, 1), np.float32)
    mix = grains.repeat(GRAIN, axis=1).repeat(GRAIN, axis=2)
    rows, columns = np.mgrid[:SIZE, :SIZE].astype(np.float32)
    angle, pace, start = chance.random((3, count, 1, 1), np.float32)
    along = rows * np.cos(angle * np.pi) + columns * np.sin(angle * np.pi)
    stripes = np.sin(along * (0.5 + pace) + start * 2 * np.pi)[..., np.newaxis]
    ground = colours[0] * mix + colours[1] * (1 - mix)
    return ground * (1 + 0.3 * stripes)


def write(source: Path, target: Path, *, files: int = 4, limit: int | None = None) -> int:
    """Write both channels as `files` objects each; return the number of images. `limit` is for the train channel."""
    import records

    total = 0
    for seed, channel in enumerate((hyperparameters.TRAIN_CHANNEL, hyperparameters.EVAL_CHANNEL)):
        grey = images.load(source / channel)
        if channel == hyperparameters.TRAIN_CHANNEL and limit is not None:
            grey = images.Images(grey.x[:limit], grey.y[:limit])
        whole = coloured(grey, seed)
        (target / channel).mkdir(parents=True, exist_ok=True)
        for index in range(files):
            records.write(target / channel / f"part-{index:05}.tfrecord", whole.part(index, files))
        total += len(whole)
    return total


def main(arguments: list[str]) -> int:
    """Write the files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "folder", type=Path, help="directory with train and eval, each with .npz files of x [n, 28, 28] and y [n]"
    )
    parser.add_argument("target", type=Path)
    parser.add_argument("--files", type=hyperparameters.positive, default=4, help="number of objects in each channel")
    parser.add_argument("--images", type=hyperparameters.positive, help="number of training images; default: all")
    options = parser.parse_args(arguments)
    total = write(options.folder, options.target, files=options.files, limit=options.images)
    print(f"{total} images of 32 x 32 x 3 in {options.files} files of each channel below {options.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
