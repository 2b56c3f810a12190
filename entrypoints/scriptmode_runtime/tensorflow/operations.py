"""The operations that read pipes, of ``native/pipe_reader.cc``."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

import tensorflow as tf

from scriptmode_runtime.tensorflow import binary

if TYPE_CHECKING:
    from scriptmode_runtime.tensorflow.settings import PipeSettings


class Operations:
    """The parts of a GeneratorDataset. A reader is named by an int64."""

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


@functools.cache
def load() -> Operations:
    """Load the wheel's binary, else one compiled on this machine; raises `NoBinaryError`, which says how to get one."""
    refused = ""
    if os.path.exists(binary.IN_WHEEL):
        try:
            return Operations(binary.IN_WHEEL)
        except tf.errors.OpError as error:
            # It was built for a newer C library, or another machine.
            refused = f"the wheel's binary cannot be loaded: {error.message}; "
    try:
        return Operations(binary.compile_cached())
    except (binary.NoBinaryError, tf.errors.OpError) as error:
        raise binary.NoBinaryError(f"pipes cannot be read: {refused}{error}; {binary.ADVICE}") from error
