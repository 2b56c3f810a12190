"""The modules that import TensorFlow; `PipeModeDataset` and `horovod` are public."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scriptmode_runtime.tensorflow.pipe_dataset import PipeModeDataset

__all__ = ["PipeModeDataset"]


def __getattr__(name: str) -> object:
    """Return `PipeModeDataset`; TensorFlow is imported at its first use."""
    if name != "PipeModeDataset":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from scriptmode_runtime.tensorflow.pipe_dataset import PipeModeDataset

    return PipeModeDataset
