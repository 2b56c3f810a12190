"""The operations that read pipes, of ``native/pipe_reader.cc``."""

from __future__ import annotations

import functools
import os
from typing import Any

import tensorflow as tf

from scriptmode_runtime.tensorflow import binary


@functools.cache
def load() -> Any:
    """Return the module of the operations: those of the wheel's binary, else of one compiled on this machine.

    Raises `NoBinaryError`, which says how to get one.
    """
    refused = ""
    if os.path.exists(binary.IN_WHEEL):
        try:
            return tf.load_op_library(binary.IN_WHEEL)
        except tf.errors.OpError as error:
            # It was built for a newer C library, or another machine.
            refused = f"the wheel's binary cannot be loaded: {error.message}; "
    try:
        return tf.load_op_library(binary.compile_cached())
    except (binary.NoBinaryError, tf.errors.OpError) as error:
        raise binary.NoBinaryError(f"pipes cannot be read: {refused}{error}; {binary.ADVICE}") from error
