"""Images as TFRecords: how to write them, and how to read a channel of them in File mode and in Pipe mode.

Shared by the programs in this directory. A pipe is read with ``scriptmode_runtime``'s `PipeModeDataset`, on the host
that has the pipe; files are read with TensorFlow's own datasets. A channel in File mode may also contain .npz files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import hyperparameters
import images
import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from pathlib import Path

FEATURES = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
#: Size of the shuffle buffer: a pipe delivers images in the order of its files.
SHUFFLE_BUFFER = 5000
LOAD_BATCH = 500


def write(path: Path, part: images.Images) -> None:
    """Write images to a TFRecord file, each as a ``tf.train.Example`` of its pixels and its class."""
    with tf.io.TFRecordWriter(str(path)) as file:
        for pixels, label in zip(part.x, part.y):
            image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[pixels.tobytes()]))
            number = tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)]))
            features = tf.train.Features(feature={"image": image, "label": number})
            file.write(tf.train.Example(features=features).SerializeToString())


def decode(batch: tf.Tensor, shape: tuple[int, ...]) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the pixels, uint8 [n, *shape], and the classes, uint8 [n], of n records."""
    parsed = tf.io.parse_example(batch, FEATURES)
    pixels = tf.reshape(tf.io.decode_raw(parsed["image"], tf.uint8), [-1, *shape])
    return pixels, tf.cast(parsed["label"], tf.uint8)


def stream(channel: str) -> tf.data.Dataset:
    """Return a dataset of the records of a channel's pipe; each new iterator reads the next epoch."""
    try:
        from scriptmode_runtime.tensorflow import PipeModeDataset
    except ImportError as error:
        message = (
            f"channel {channel!r} is in Pipe mode, and PipeModeDataset is not installed ({error}): "
            "use an image that has scriptmode, or TrainingInput(..., input_mode='File') with .npz files"
        )
        raise SystemExit(message) from error
    return PipeModeDataset(channel, record_format="TFRecord")


def batches(stream: tf.data.Dataset, shape: tuple[int, ...], batch_size: int, *, seed: int) -> tf.data.Dataset:
    """Return an endless dataset of batches of a stream's images; each pass reads the pipe's next epoch."""
    dataset = stream.repeat().shuffle(SHUFFLE_BUFFER, seed=seed).batch(batch_size, drop_remainder=True)
    return dataset.map(lambda batch: decode(batch, shape)).prefetch(2)


def load(channel: str) -> images.Images:
    """Read all of a channel into memory: its files, TFRecord or .npz, or one epoch of its pipe."""
    if hyperparameters.is_piped(channel):
        return _read(stream(channel), f"the pipe of channel {channel!r}")
    folder = hyperparameters.channel(channel)
    paths = sorted(map(str, folder.glob("*.tfrecord")))
    if paths:
        return _read(tf.data.TFRecordDataset(paths), str(folder))
    return images.load(folder)


def _read(dataset: tf.data.Dataset, source: str) -> images.Images:
    pixels, labels = [], []
    for batch in dataset.batch(LOAD_BATCH):
        parsed = tf.io.parse_example(batch, FEATURES)
        flat = tf.io.decode_raw(parsed["image"], tf.uint8).numpy()
        pixels.append(flat.reshape(-1, *images.shape_of(flat.shape[1])))
        labels.append(parsed["label"].numpy().astype(np.uint8))
    if not pixels:
        message = f"{source} contains no records; check that the channel is a directory of TFRecord files"
        raise SystemExit(message)
    return images.Images(np.concatenate(pixels), np.concatenate(labels))


def held_out() -> images.Images:
    """Load the held-out images of the eval channel."""
    return load(hyperparameters.EVAL_CHANNEL)
