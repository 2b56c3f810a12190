"""The only rooms that import TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scriptmode_runtime.tensorflow.pipe_dataset import PipeModeDataset

__all__ = ["PipeModeDataset"]


def __getattr__(name: str) -> object:
    """Give `PipeModeDataset`; TensorFlow is imported when it is first asked for."""
    if name != "PipeModeDataset":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from scriptmode_runtime.tensorflow.pipe_dataset import PipeModeDataset

    return PipeModeDataset
