"""Images of a channel's folder, and the share of them that one trainer works on.

Shared by the programs of this folder; needs NumPy and no TensorFlow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Images:
    """Pixels ``x``, uint8 [n, 28, 28], and classes ``y``, uint8 [n]."""

    x: np.ndarray
    y: np.ndarray

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


def load(folder: Path) -> Images:
    """Read all ``*.npz`` of a folder, in the order of their names.

    Raises ``FileNotFoundError`` when there is none, ``ValueError`` when one holds other arrays
    than ``x`` [n, 28, 28] and ``y`` [n].
    """
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        message = f"{folder} holds no .npz file; each should have the arrays x [n, 28, 28] and y [n]"
        raise FileNotFoundError(message)
    parts = [_read(path) for path in paths]
    return Images(np.concatenate([p.x for p in parts]), np.concatenate([p.y for p in parts]))


def _read(path: Path) -> Images:
    with np.load(path) as arrays:
        if not {"x", "y"} <= set(arrays.files):
            message = f"{path} holds the arrays {arrays.files}, not x and y"
            raise ValueError(message)
        x, y = arrays["x"], arrays["y"]
    if x.shape[1:] != (28, 28) or y.shape != x.shape[:1]:
        message = f"{path} holds x {x.shape} and y {y.shape}, not [n, 28, 28] and [n]"
        raise ValueError(message)
    return Images(x, y)
