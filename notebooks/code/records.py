"""Images as TFRecords: how one is written, and how a channel in Pipe mode is read.

Shared by the programs of this folder. A pipe is read with ``scriptmode_runtime``'s `PipeModeDataset`, on the host
whose pipe it is.
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
#: A pipe brings images in the order of its files: the next batch is drawn from so many.
SHUFFLED = 5000
LOADED_AT_ONCE = 500


def write(path: Path, part: images.Images) -> None:
    """Write images to a TFRecord file, each as a ``tf.train.Example`` of its pixels and its class."""
    with tf.io.TFRecordWriter(str(path)) as file:
        for pixels, label in zip(part.x, part.y):
            image = tf.train.Feature(bytes_list=tf.train.BytesList(value=[pixels.tobytes()]))
            number = tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)]))
            features = tf.train.Features(feature={"image": image, "label": number})
            file.write(tf.train.Example(features=features).SerializeToString())


def decode(batch: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Give the pixels, uint8 [n, 28, 28], and the classes, uint8 [n], of n records."""
    parsed = tf.io.parse_example(batch, FEATURES)
    pixels = tf.reshape(tf.io.decode_raw(parsed["image"], tf.uint8), [-1, 28, 28])
    return pixels, tf.cast(parsed["label"], tf.uint8)


def stream(channel: str) -> tf.data.Dataset:
    """Give the records of a channel's pipe: one pass, and with each new iterator the next one."""
    try:
        from scriptmode_runtime.tensorflow import PipeModeDataset
    except ImportError as error:
        message = (
            f"channel {channel!r} is in Pipe mode, and the reader of pipes is not here ({error}): "
            "use an image that has scriptmode, or TrainingInput(..., input_mode='File') with .npz files"
        )
        raise SystemExit(message) from error
    return PipeModeDataset(channel, record_format="TFRecord")


def batches(records: tf.data.Dataset, batch_size: int, seed: int) -> tf.data.Dataset:
    """Give endless batches of the images of a stream; each pass takes the pipe's next epoch."""
    dataset = records.repeat().shuffle(SHUFFLED, seed=seed)
    return dataset.batch(batch_size, drop_remainder=True).map(decode).prefetch(2)


def load(channel: str) -> images.Images:
    """Read one epoch of a channel's pipe to its end."""
    parts = [(x.numpy(), y.numpy()) for x, y in stream(channel).batch(LOADED_AT_ONCE).map(decode)]
    if not parts:
        message = f"the pipe of channel {channel!r} brought no record; does it name a folder of TFRecord files?"
        raise SystemExit(message)
    return images.Images(np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts]))


def held_out() -> images.Images:
    """Load the images that no trainer sees, from the eval channel's pipe or its files."""
    channel = hyperparameters.EVAL_CHANNEL
    if hyperparameters.is_piped(channel):
        return load(channel)
    return images.load(hyperparameters.channel(channel))
