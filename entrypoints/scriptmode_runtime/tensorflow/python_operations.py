"""The operations that read pipes, in Python: for machines without the binary and without a compiler."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import select
import sys
import time
from typing import TYPE_CHECKING

import tensorflow as tf

from scriptmode_runtime import contract
from scriptmode_runtime.tensorflow.python_epochs import Epochs, check_channel, folder
from scriptmode_runtime.tensorflow.python_framing import FRAMINGS, DamageError, Stream

if TYPE_CHECKING:
    from scriptmode_runtime.tensorflow.settings import PipeSettings

#: How many seconds a call waits for an idle pipe. Between calls TensorFlow looks whether the iterator is still wanted.
_PATIENCE = 0.1
_LOOK = 0.01
_READ = 1 << 18
_PIPE_SIZE = 1 << 20
_SET_PIPE_SIZE = 1031  # fcntl's F_SETPIPE_SZ, which Python names from 3.10 on
_MANY_RECORDS = 4096


class PipeReader:
    """One pass over one epoch of a channel."""

    def __init__(self, settings: PipeSettings) -> None:
        self._settings = settings
        config = os.path.join(folder(settings.config_dir, contract.CONFIG_DIR), "inputdataconfig.json")
        check_channel(config, settings.channel)
        pipe_dir = folder(settings.pipe_dir, contract.DATA_DIR)
        self._epochs = Epochs(pipe_dir, config, folder(settings.state_dir, "pipe_state"), settings.channel)
        self._stream = Stream(settings.max_corrupted_records_to_skip)
        self._cut = FRAMINGS[settings.record_format](self._stream)
        self._records: list[bytes] = []
        self._fifo: int | None = None
        self._is_connected = self._is_cut = False
        self._failure: tf.errors.OpError | None = None
        self._began = self._opened = time.monotonic()

    def next(self) -> tuple[list[bytes], int]:
        """Give records, whole vectors of so many each; none where the pipe is idle. ``StopIteration`` is the end."""
        columns = self._settings.batch_size or 1
        until = time.monotonic() + _PATIENCE
        if self._fifo is None and not self._stream.ended and not self._await_fifo(until):
            return [], columns
        while True:
            self._cut_records(max(columns, _MANY_RECORDS))
            whole = len(self._records) // columns * columns
            if whole:
                return self._take(whole), columns
            if self._failure:
                raise self._failure
            if self._is_cut:
                return self._rest()
            if self._stream.ended or self._read():
                continue
            left = until - time.monotonic()
            if left <= 0 or not _poll(self._fifo, left):
                self._check_time()
                return [], columns

    def close(self) -> None:
        """Close the FIFO: the platform goes on with the next epoch."""
        if self._fifo is not None:
            os.close(self._fifo)
            self._fifo = None

    def _cut_records(self, most: int) -> None:
        while len(self._records) < most and not self._is_cut:
            try:
                record = next(self._cut)
            except StopIteration:
                self._is_cut = True
                return
            except DamageError as error:
                # Told after the records before it were handed over.
                message = f"channel {self._settings.channel!r}: {self._epochs.path}: {error}"
                self._failure = tf.errors.DataLossError(None, None, message)
                self._is_cut = True
                return
            if record is None:
                return
            self._records.append(record)
            interval = self._settings.benchmark_records_interval
            if interval and self._stream.count % interval == 0:
                self._report("so far")

    def _take(self, count: int) -> list[bytes]:
        taken, self._records = self._records[:count], self._records[count:]
        return taken

    def _rest(self) -> tuple[list[bytes], int]:
        left = len(self._records)
        if left:
            return self._take(left), left
        if self._settings.benchmark:
            self._report("at the end")
        raise StopIteration

    def _await_fifo(self, until: float) -> bool:
        while True:
            self._fifo = self._epochs.open()
            if self._fifo is not None:
                break
            if time.monotonic() >= until:
                self._check_time()
                return False
            time.sleep(_LOOK)
        # May be refused where the user's pipes hold much already.
        with contextlib.suppress(OSError):
            fcntl.fcntl(self._fifo, _SET_PIPE_SIZE, _PIPE_SIZE)
        self._opened = time.monotonic()
        return True

    def _check_time(self) -> None:
        timeout = self._settings.timeout
        if self._is_connected or time.monotonic() - self._began < timeout:
            return
        path = self._epochs.path
        what = f"{path} did not come" if self._fifo is None else f"nobody opened {path} for writing"
        raise tf.errors.DeadlineExceededError(
            None,
            None,
            f"channel {self._settings.channel!r}: {what} within {timeout:.1f} s; it is the platform that makes and "
            "fills it: see the job's log for why it does not, or give a longer timeout",
        )

    def _read(self) -> bool:
        """Read once, without waiting; tell whether there was something, if only the end."""
        assert self._fifo is not None  # noqa: S101 - for the types
        try:
            part = os.read(self._fifo, _READ)
        except BlockingIOError:
            self._is_connected = True
            return False
        if not part and not self._is_connected and not _poll(self._fifo, 0):
            # Before the first writer a FIFO reads as if it had ended, but is polled neither readable nor hung up.
            return False
        if not part and not self._is_connected:
            self._is_connected = True
            return self._read()
        self._is_connected = True
        self._stream.buffer += part
        if not part:
            self._stream.ended = True
            self.close()
        return True

    def _report(self, when: str) -> None:
        seconds = time.monotonic() - self._opened
        megabytes = self._stream.position / 1e6
        sys.stderr.write(
            f"scriptmode: channel {self._settings.channel!r}, epoch {self._epochs.epoch}, {when}: "
            f"{self._stream.count} records, {megabytes:.3f} MB in {seconds:.3f} s ({megabytes / seconds:.1f} MB/s)\n"
        )


def _poll(fifo: int | None, seconds: float) -> bool:
    assert fifo is not None  # noqa: S101 - for the types
    polled = select.poll()
    polled.register(fifo, select.POLLIN)
    return bool(polled.poll(seconds * 1000))


class PythonOperations:
    """Readers of this process. They cannot run in another one, as on a coordinator's worker.

    What goes wrong is an ``UnknownError`` here, whose text names the kind: TensorFlow gives Python functions no other.
    """

    def __init__(self) -> None:
        self._readers: dict[int, PipeReader] = {}
        self._names = itertools.count(1)

    def open(self, settings: PipeSettings) -> tf.Tensor:
        """Give a reader of the channel's next epoch; reads nothing yet."""

        def open_reader() -> int:
            name = next(self._names)
            self._readers[name] = PipeReader(settings)
            return name

        return _called(open_reader, [], tf.int64)

    def next(self, reader: tf.Tensor, settings: PipeSettings) -> tf.Tensor:
        """Give some elements; none where the pipe is idle. ``OutOfRangeError`` is the end."""

        def read(name: int) -> tuple[list[bytes], int]:
            records, columns = self._readers[int(name)].next()
            return [*records, b""], columns  # an empty list would be one of numbers

        records, columns = tf.numpy_function(read, [reader], [tf.string, tf.int64])
        return tf.reshape(records[:-1], [-1, columns] if settings.batch_size else [-1])

    def close(self, reader: tf.Tensor) -> tf.Tensor:
        """Drop the reader, and its FIFO."""

        def close_reader(name: int) -> int:
            self._readers.pop(int(name)).close()
            return 0

        return _called(close_reader, [reader], tf.int64)


def _called(function: object, inputs: list[tf.Tensor], kind: tf.DType) -> tf.Tensor:
    result = tf.numpy_function(function, inputs, kind)
    result.set_shape([])
    return result
