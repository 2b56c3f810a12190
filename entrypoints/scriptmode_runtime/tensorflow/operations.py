"""The operations that read pipes: compiled ones where there is a binary or a compiler, else those in Python."""

from __future__ import annotations

import functools
import os
import warnings
from typing import TYPE_CHECKING, Protocol

import tensorflow as tf

from scriptmode_runtime.tensorflow import binary

if TYPE_CHECKING:
    from scriptmode_runtime.tensorflow.settings import PipeSettings

#: "python" selects the reader in Python although there is a binary or a compiler.
READER_VARIABLE = "SCRIPTMODE_PIPE_READER"


class Operations(Protocol):
    """The parts of a GeneratorDataset. A reader is named by an int64."""

    def open(self, settings: PipeSettings) -> tf.Tensor:
        """Return a reader of the channel's next epoch; reads nothing yet."""

    def next(self, reader: tf.Tensor, settings: PipeSettings) -> tf.Tensor:
        """Return the next elements; none where the pipe is idle. ``OutOfRangeError`` is the end."""

    def close(self, reader: tf.Tensor) -> tf.Tensor:
        """Close the reader and its FIFO."""


class CompiledOperations:
    """The operations of ``native/pipe_reader.cc``."""

    def __init__(self, path: str) -> None:
        self._library = tf.load_op_library(path)

    def open(self, settings: PipeSettings) -> tf.Tensor:
        """Return a reader of the channel's next epoch; reads nothing yet."""
        return self._library.scriptmode_pipe_open(
            channel=settings.channel,
            record_format=settings.record_format,
            pipe_dir=settings.pipe_dir,
            config_dir=settings.config_dir,
            state_dir=settings.state_dir,
            batch_size=settings.batch_size,
            timeout=settings.timeout,
            benchmark=int(settings.benchmark),
            benchmark_records_interval=settings.benchmark_records_interval,
            max_corrupted_records_to_skip=settings.max_corrupted_records_to_skip,
        )

    def next(self, reader: tf.Tensor, settings: PipeSettings) -> tf.Tensor:
        """Return the next elements; none where the pipe is idle. ``OutOfRangeError`` is the end."""
        records = self._library.scriptmode_pipe_next(reader=reader)
        return tf.ensure_shape(records, [None, None] if settings.batch_size else [None])

    def close(self, reader: tf.Tensor) -> tf.Tensor:
        """Close the reader and its FIFO."""
        return self._library.scriptmode_pipe_close(reader=reader)


def load() -> Operations:
    """Return the operations, compiled now where there is only a compiler; warns once about the fallback to Python."""
    if os.environ.get(READER_VARIABLE) == "python":
        return _in_python()
    return _load()


@functools.cache
def _load() -> Operations:
    try:
        return compiled()
    except binary.NoBinaryError as error:
        warnings.warn(
            f"pipes are read in Python, many times slower, and not at all on a coordinator's workers ({error}); "
            "install a C++ compiler, or a wheel that has the binary for this machine",
            RuntimeWarning,
            stacklevel=4,
        )
        return _in_python()


def compiled() -> CompiledOperations:
    """Load the wheel's binary, else one compiled on this machine; raises `NoBinaryError`."""
    refused = ""
    if os.path.exists(binary.IN_WHEEL):
        try:
            return CompiledOperations(binary.IN_WHEEL)
        except tf.errors.OpError as error:
            # It was built for a newer C library, or another machine.
            refused = f"the wheel's binary cannot be loaded: {error.message}; "
    try:
        path = binary.compile_cached()
    except binary.NoBinaryError as error:
        raise binary.NoBinaryError(f"{refused}{error}") from error
    try:
        return CompiledOperations(path)
    except tf.errors.OpError as error:
        raise binary.NoBinaryError(f"{refused}{path} cannot be loaded: {error.message}") from error


@functools.cache
def _in_python() -> Operations:
    from scriptmode_runtime.tensorflow.python_operations import PythonOperations

    return PythonOperations()
