"""Images in the directory of a channel, and the shard of them that one trainer uses.

Shared by the programs in this directory; needs NumPy but not TensorFlow.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

#: Shape of one image: grayscale as in MNIST, color as in CIFAR.
GREY, COLOURED = (28, 28), (32, 32, 3)
_EXPECTED = "[n, 28, 28] or [n, 32, 32, 3]"


@dataclass(frozen=True)
class Images:
    """Pixels ``x``, uint8 [n, 28, 28] or [n, 32, 32, 3], and classes ``y``, uint8 [n]."""

    x: np.ndarray
    y: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one image."""
        return tuple(self.x.shape[1:])

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.y)

    def part(self, index: int, count: int) -> Images:
        """Return every `count`-th image, starting with image `index`; sizes of parts differ by at most one image."""
        if not 0 <= index < count:
            message = f"part {index} of {count}: the index is not within 0..{count - 1}"
            raise ValueError(message)
        return Images(self.x[index::count], self.y[index::count])


@dataclass(frozen=True)
class Trainer:
    """The index of a trainer among all trainers of the job, and among the trainers of its host."""

    index: int = 0
    count: int = 1
    local_index: int = 0
    local_count: int = 1

    def share(self, images: Images, *, sharded: bool) -> Images:
        """Return this trainer's shard of its host's channel.

        A replicated channel is divided among all trainers. A channel that the platform already
        sharded by host is divided only among the trainers of this host.
        """
        if sharded:
            return images.part(self.local_index, self.local_count)
        return images.part(self.index, self.count)


def channels(data: str | Path) -> dict[str, str]:
    """Return the inputs of ``fit`` for data on this machine.

    `data` is a directory with ``train`` and ``eval``, or one file with both splits in the format of `load`.
    """
    return {"train": _channel(data, "train").as_uri(), "eval": _channel(data, "eval").as_uri()}


def held_out(data: str | Path) -> Images:
    """Load the images of the eval channel; `data` is as for `channels`."""
    return load(_channel(data, "eval"), "test")


def _channel(data: str | Path, name: str) -> Path:
    whole = Path(data).resolve()
    return whole if whole.is_file() else whole / name


def shape_of(size: int) -> tuple[int, ...]:
    """Return the shape of an image with this number of bytes; raise ``ValueError`` for an unsupported size."""
    for shape in (GREY, COLOURED):
        if np.prod(shape) == size:
            return shape
    message = f"an image has {size} bytes; images of {_EXPECTED} have 784 or 3072"
    raise ValueError(message)


def load(folder: Path, split: str | None = None) -> Images:
    """Read all ``*.npz`` files of a directory, in the order of their names, or one such file.

    A file contains ``x``, [n, 28, 28] or [n, 32, 32, 3], and ``y``, [n]. If `split` is given (train or test), a file
    may instead contain a whole data set in the format of MNIST: ``x_train``, ``y_train``, ``x_test`` and ``y_test``.
    Raise ``FileNotFoundError`` if there is no file, and ``ValueError`` if a file contains other arrays.
    """
    paths = [folder] if folder.is_file() else sorted(folder.glob("*.npz"))
    if not paths:
        message = f"{folder} contains no .npz file; expected files with the arrays x {_EXPECTED} and y [n]"
        raise FileNotFoundError(message)
    parts = [_read(path, split) for path in paths]
    return Images(np.concatenate([p.x for p in parts]), np.concatenate([p.y for p in parts]))


def _read(path: Path, split: str | None) -> Images:
    with np.load(path) as arrays:
        suffix = f"_{split}" if split and f"x_{split}" in arrays.files else ""
        names = (f"x{suffix}", f"y{suffix}")
        if not set(names) <= set(arrays.files):
            message = f"{path} contains the arrays {arrays.files}, not x and y"
            raise ValueError(message)
        x, y = (arrays[name] for name in names)
    if x.shape[1:] not in (GREY, COLOURED) or y.shape != x.shape[:1]:
        message = f"{path} contains x {x.shape} and y {y.shape}, not {_EXPECTED} and [n]"
        raise ValueError(message)
    return Images(x, y)
