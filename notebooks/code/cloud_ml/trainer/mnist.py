"""Images of 28 x 28 pixels and a network with two hidden layers, as TensorFlow 1 graphs.

The graph is built by functions, because it is built twice: distributed over parameter servers for training, and on one
node for the export. It does not use Keras, so it works with every TensorFlow 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import tensorflow.compat.v1 as tf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CLASSES = 10
PIXELS = 28 * 28
#: Number of held-out images that the network evaluates at a time, to limit memory.
SCORING_BATCH = 1000


class Images(NamedTuple):
    """Pixels ``x``, uint8 [n, 28, 28], and classes ``y``, uint8 [n]."""

    x: np.ndarray
    y: np.ndarray


class Inputs(NamedTuple):
    """Placeholders for the images of a step and for their classes."""

    images: tf.Tensor
    labels: tf.Tensor


def load(folder: Path) -> Images:
    """Read all ``*.npz`` files of a directory; end the program with a message if there is none."""
    paths = sorted(folder.glob("*.npz"))
    if not paths:
        message = f"{folder} contains no .npz file; expected files with the arrays x [n, 28, 28] and y [n]"
        raise SystemExit(message)
    parts = []
    for path in paths:
        with np.load(path) as arrays:
            parts.append((arrays["x"], arrays["y"]))
    return Images(np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts]))


def share(images: Images, index: int, count: int) -> Images:
    """Return every `count`-th image, starting with image `index`: the shard of one of `count` trainers."""
    return Images(images.x[index::count], images.y[index::count])


def batches(images: Images, size: int, seed: int) -> Iterator[Images]:
    """Yield batches endlessly, in a new order in each pass over the images."""
    if len(images.y) < size:
        message = (
            f"a trainer's shard of {len(images.y)} images is smaller than a batch of {size}; reduce the batch size"
        )
        raise SystemExit(message)
    order = np.random.default_rng(seed)
    while True:
        shuffled = order.permutation(len(images.y))
        for first in range(0, len(shuffled) - size + 1, size):
            chosen = shuffled[first : first + size]
            yield Images(images.x[chosen], images.y[chosen])


def inputs() -> Inputs:
    """Create the placeholders of a batch."""
    return Inputs(
        tf.placeholder(tf.uint8, [None, 28, 28], name="images"),
        tf.placeholder(tf.int64, [None], name="labels"),
    )


def inference(images: tf.Tensor, hidden1: int, hidden2: int) -> tf.Tensor:
    """Return the logits, float32 [n, 10]. The variables have the same names in both graphs."""
    scaled = tf.cast(images, tf.float32) / 255
    layer = tf.nn.relu(_dense(tf.reshape(scaled, [-1, PIXELS]), "hidden1", PIXELS, hidden1))
    layer = tf.nn.relu(_dense(layer, "hidden2", hidden1, hidden2))
    return _dense(layer, "logits", hidden2, CLASSES)


def _dense(layer: tf.Tensor, name: str, units_in: int, units_out: int) -> tf.Tensor:
    with tf.variable_scope(name):
        scale = tf.truncated_normal_initializer(stddev=units_in**-0.5)
        weights = tf.get_variable("weights", [units_in, units_out], initializer=scale)
        biases = tf.get_variable("biases", [units_out], initializer=tf.zeros_initializer())
        return tf.matmul(layer, weights) + biases


def loss(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Return the mean cross-entropy of a batch."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def accuracy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Return the fraction of a batch that is classified correctly."""
    return tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, axis=-1), labels), tf.float32))


def training(cost: tf.Tensor, learning_rate: float, global_step: tf.Tensor) -> tf.Operation:
    """Return the operation that applies the gradients of a batch and increments the global step."""
    return tf.train.AdamOptimizer(learning_rate).minimize(cost, global_step=global_step)
