"""Images of a channel's folder, and the share of them that one trainer works on.

Shared by the programs of this folder; needs NumPy and no TensorFlow.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

#: Of one image: grey ones as MNIST has them, coloured ones as CIFAR has them.
GREY, COLOURED = (28, 28), (32, 32, 3)
_EXPECTED = "[n, 28, 28] or [n, 32, 32, 3]"


@dataclass(frozen=True)
class Images:
    """Pixels ``x``, uint8 [n, 28, 28] or [n, 32, 32, 3], and classes ``y``, uint8 [n]."""

    x: np.ndarray
    y: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one image."""
        return tuple(self.x.shape[1:])

    def __len__(self) -> int:
        """Count the images."""
        return len(self.y)

    def part(self, index: int, count: int) -> Images:
        """Take every `count`-th image, from image `index` on: parts differ by one image at most."""
        if not 0 <= index < count:
            message = f"part {index} of {count}: the index is not within 0..{count - 1}"
            raise ValueError(message)
        return Images(self.x[index::count], self.y[index::count])


@dataclass(frozen=True)
class Trainer:
    """One trainer's place among all trainers of the job, and among those of its own host."""

    index: int = 0
    count: int = 1
    local_index: int = 0
    local_count: int = 1

    def share(self, images: Images, *, sharded: bool) -> Images:
        """Take this trainer's own images out of its host's channel.

        A replicated channel is divided among all trainers; a channel that the platform already
        sharded by host only among the trainers of this host.
        """
        if sharded:
            return images.part(self.local_index, self.local_count)
        return images.part(self.index, self.count)


def channels(data: str | Path) -> dict[str, str]:
    """Give a training's channels as ``fit`` takes them, of data on this machine.

    `data` is a folder with ``train`` and ``eval``, or one file with both splits, as `load` reads them.
    """
    return {"train": _channel(data, "train").as_uri(), "eval": _channel(data, "eval").as_uri()}


def held_out(data: str | Path) -> Images:
    """Load the images of the eval channel of such data."""
    return load(_channel(data, "eval"), "test")


def _channel(data: str | Path, name: str) -> Path:
    whole = Path(data).resolve()
    return whole if whole.is_file() else whole / name


def shape_of(size: int) -> tuple[int, ...]:
    """Give the shape of an image of so many bytes; raises ``ValueError`` for no image of ours."""
    for shape in (GREY, COLOURED):
        if np.prod(shape) == size:
            return shape
    message = f"an image has {size} bytes; those of {_EXPECTED} have 784 or 3072"
    raise ValueError(message)


def load(folder: Path, split: str | None = None) -> Images:
    """Read all ``*.npz`` of a folder, in the order of their names, or one such file.

    A file holds ``x``, [n, 28, 28] or [n, 32, 32, 3], and ``y``, [n]; where the caller names a `split` (train or test)
    it may instead hold all of a data set as MNIST is published: ``x_train``, ``y_train``,
    ``x_test`` and ``y_test``, of which the split is taken.
    Raises ``FileNotFoundError`` when there is no file, ``ValueError`` when one holds other arrays.
    """
    paths = [folder] if folder.is_file() else sorted(folder.glob("*.npz"))
    if not paths:
        message = f"{folder} holds no .npz file; each should have the arrays x {_EXPECTED} and y [n]"
        raise FileNotFoundError(message)
    parts = [_read(path, split) for path in paths]
    return Images(np.concatenate([p.x for p in parts]), np.concatenate([p.y for p in parts]))


def _read(path: Path, split: str | None) -> Images:
    with np.load(path) as arrays:
        suffix = f"_{split}" if split and f"x_{split}" in arrays.files else ""
        names = (f"x{suffix}", f"y{suffix}")
        if not set(names) <= set(arrays.files):
            message = f"{path} holds the arrays {arrays.files}, not x and y"
            raise ValueError(message)
        x, y = (arrays[name] for name in names)
    if x.shape[1:] not in (GREY, COLOURED) or y.shape != x.shape[:1]:
        message = f"{path} holds x {x.shape} and y {y.shape}, not {_EXPECTED} and [n]"
        raise ValueError(message)
    return Images(x, y)
