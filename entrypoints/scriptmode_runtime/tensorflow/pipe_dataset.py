"""Channels in pipe mode as TensorFlow datasets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from scriptmode_runtime.tensorflow import operations

_RECORD_FORMATS = ("RecordIO", "TFRecord", "TextLine")
#: Waiting for the pipe happens in a thread of the dataset, not in TensorFlow's threads for computation.
_THREADS = 1


class PipeModeDataset(tf.data.Dataset):  # type: ignore[misc]
    r"""The records of a channel in pipe mode, as scalar strings, or as vectors of ``batch_size`` of them.

    One iterator is one pass over one epoch: the first reads the FIFO ``<channel>_0``, the next one ``<channel>_1``,
    and so on, whichever of the job's processes on a host makes them. So ``repeat``, and ``fit`` with several epochs,
    take one FIFO for each epoch. The FIFO is opened when the first record is requested. An iterator that is dropped
    early closes its FIFO, and the platform goes on with the next epoch.

    Vectors are much faster for small records, and ``tf.io.parse_example`` takes them as they are::

        PipeModeDataset("train", record_format="TFRecord", batch_size=256).map(lambda batch: parse_example(batch, ...))

    ``record_format`` is "RecordIO", "TFRecord" or "TextLine" (lines ended by ``\n`` or ``\r\n``). Directories that are
    not given are those of the training host where the dataset *runs* (``SAGEMAKER_BASE_DIR``, else ``/opt/ml``):
    with a parameter-server coordinator, that of the worker. ``state_dir`` keeps which epoch is next; another run of
    the job begins with the first one. ``benchmark`` and ``benchmark_records_interval`` have no effect, and
    ``max_corrupted_records_to_skip`` must be 0: a damaged record is an error. ``timeout`` is how many seconds the
    epoch's FIFO may take to come and be written to.

    Arguments are those of ``sagemaker_tensorflow.PipeModeDataset``, with ``batch_size`` and ``timeout`` beside them.
    Raises ``ValueError`` for arguments that cannot be, and ``RuntimeError`` where neither scriptmode's wheel has the
    binary that reads pipes nor a C++ compiler can build it. While it runs: ``NotFoundError`` for a channel that the job
    does not have, ``FailedPreconditionError`` for one in File mode, ``DeadlineExceededError`` for a FIFO that does
    not come, ``DataLossError`` for damaged records.

    TensorFlow's own datasets cannot read a FIFO: ``tf.data.TFRecordDataset`` fails with "Illegal seek", since it
    reads at offsets, and ``tf.data.FixedLengthRecordDataset`` silently yields nothing, since it reads the file's
    size first, which is 0.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the arguments of sagemaker_tensorflow.PipeModeDataset
        self,
        channel: str,
        record_format: str = "RecordIO",
        state_dir: str | None = None,
        pipe_dir: str | None = None,
        config_dir: str | None = None,
        benchmark: bool = False,  # noqa: ARG002, FBT001, FBT002 - its place there
        benchmark_records_interval: int = 0,  # noqa: ARG002
        max_corrupted_records_to_skip: int = 0,
        *,
        batch_size: int | None = None,
        timeout: float = 300.0,
    ) -> None:
        # A directory "" is that of the host where the dataset runs.
        settings = {
            "channel": channel,
            "record_format": record_format,
            "state_dir": state_dir or "",
            "pipe_dir": pipe_dir or "",
            "config_dir": config_dir or "",
            "batch_size": batch_size or 0,
            "timeout": timeout,
        }
        if max_corrupted_records_to_skip:
            raise ValueError("max_corrupted_records_to_skip is not 0; leave it out: a damaged record is an error")
        _check(settings)
        self._records = _dataset(settings)
        super().__init__(tf.data.experimental.to_variant(self._records))

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._records]

    @property
    def element_spec(self) -> tf.TensorSpec:
        """One string, or a vector of them."""
        return self._records.element_spec


def _check(settings: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for the first invalid argument."""
    channel, record_format, timeout = (settings[name] for name in ("channel", "record_format", "timeout"))
    # SageMaker's API reference, Channel.
    if not re.fullmatch(r"[A-Za-z0-9.\-_]+", channel):
        raise ValueError(f"channel {channel!r} is not a name of a channel; use letters, digits, '.', '-' and '_'")
    if record_format not in _RECORD_FORMATS:
        raise ValueError(f"record_format {record_format!r} is none of {', '.join(map(repr, _RECORD_FORMATS))}")
    if settings["batch_size"] < 0:
        raise ValueError(f"batch_size is {settings['batch_size']}; it cannot be negative")
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout}; it is a number of seconds above 0")


def _dataset(settings: Mapping[str, Any]) -> tf.data.Dataset:
    """Return a dataset with one record, or one vector of records, for each element."""
    library = operations.load()
    # In a function, for TensorFlow can neither optimize nor send a graph that has a GeneratorDataset at its top.
    once = tf.data.Dataset.from_tensors(0)
    # Unbatching does not copy the records.
    return once.flat_map(lambda _: _read_batches(library, settings)).unbatch()


def _read_batches(library: Any, settings: Mapping[str, Any]) -> tf.data.Dataset:
    """Return a dataset of the records, or vectors, of each read of the pipe; none where the pipe is idle."""
    name = tf.TensorSpec([], tf.int64)
    shape = tf.TensorShape([None, None] if settings["batch_size"] else [None])
    types = {"output_types": [tf.string], "output_shapes": [shape]}

    def proceed(reader: tf.Tensor) -> tf.Tensor:
        return tf.ensure_shape(library.scriptmode_pipe_next(reader=reader), shape)

    def function(operation: Callable[..., tf.Tensor], *arguments: tf.TensorSpec) -> Any:
        return tf.function(operation, autograph=False).get_concrete_function(*arguments)

    called = tf.raw_ops.GeneratorDataset(
        init_func_other_args=[],
        next_func_other_args=[],
        finalize_func_other_args=[],
        init_func=function(lambda: library.scriptmode_pipe_open(**settings)),
        next_func=function(proceed, name),
        finalize_func=function(lambda reader: library.scriptmode_pipe_close(reader=reader), name),
        **types,
    )
    apart = tf.raw_ops.PrivateThreadPoolDataset(input_dataset=called, num_threads=_THREADS, **types)
    return tf.data.experimental.from_variant(apart, tf.TensorSpec(shape, tf.string))
