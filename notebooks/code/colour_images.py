"""Make coloured images of CIFAR's size out of grey ones, as TFRecord files.

python colour_images.py FOLDER TARGET [--files N] [--images N]

FOLDER has the channels ``train`` and ``eval`` with .npz files of 28 x 28 images, as the Fashion-MNIST subset that comes
with the project; TARGET gets the same channels with images of 32 x 32 x 3. Each article is dyed in a colour of its
own, moved by up to four pixels and laid on a coloured texture with stripes: as in photographs, neither place nor
brightness tells it from what is around it. CIFAR-10 itself is not part of the project; its images have this shape and
as many classes. The same images come out each time.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import hyperparameters
import images
import numpy as np

# TensorFlow's errors only; read when it is imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

SIZE = 32
#: Of the textures' coarsest grain, in pixels.
GRAIN = 8
#: How bright articles are, and what they lie on: they overlap.
ARTICLE, GROUND = (120, 256), (0, 150)


def coloured(grey: images.Images, seed: int) -> images.Images:
    """Give the images in colour, moved and on textures; by the seed, the same ones each time."""
    chance = np.random.default_rng(seed)
    count = len(grey)
    cover = _moved(grey.x, chance)[..., np.newaxis].astype(np.float32) / 255
    dye = chance.integers(*ARTICLE, (count, 1, 1, 3)).astype(np.float32)
    mixed = cover * dye + (1 - cover) * _ground(count, chance)
    return images.Images(mixed.astype(np.uint8), grey.y)


def _moved(grey: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Lay each image of 28 x 28 somewhere on one of 32 x 32."""
    rest = SIZE - grey.shape[1] + 1
    result = np.zeros((len(grey), SIZE, SIZE), np.uint8)
    places = chance.integers(0, rest, (len(grey), 2))
    for image, pixels, (top, left) in zip(result, grey, places):
        image[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels
    return result


def _ground(count: int, chance: np.random.Generator) -> np.ndarray:
    """Give float32 [count, 32, 32, 3]: two colours in coarse grains, and stripes over them."""
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
    """Write both channels, the images in `files` objects each; give their number. `limit` is for the train channel."""
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
    parser.add_argument("folder", type=Path, help="has train and eval with .npz files of x [n, 28, 28] and y [n]")
    parser.add_argument("target", type=Path)
    parser.add_argument("--files", type=hyperparameters.positive, default=4, help="objects of a channel")
    parser.add_argument("--images", type=hyperparameters.positive, help="training images; default: all")
    options = parser.parse_args(arguments)
    total = write(options.folder, options.target, files=options.files, limit=options.images)
    print(f"{total} images of 32 x 32 x 3 in {options.files} files of each channel below {options.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
