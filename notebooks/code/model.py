"""One small convolutional network for images in ten classes: build, train a step, save, load, evaluate.

Shared by the programs in this directory. It runs on Keras 2, which is part of TensorFlow up to 2.15 and of the package
``tf-keras`` from 2.16 on. It runs on Keras 3 if ``tf-keras`` is not installed, or with ``TF_USE_LEGACY_KERAS=0`` in the
job's environment.
"""

from __future__ import annotations

import importlib.util
import os
import tarfile
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

# TensorFlow reads both when it is first imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
if importlib.util.find_spec("tf_keras") is not None:
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from images import Images

# Strategies read the options of datasets in graphs, for which tf.data warns; no program here sets options.
warnings.filterwarnings("ignore", message="To make it possible to preserve tf.data options")

CLASSES = 10
#: Number of images that a model evaluates at a time, to limit memory.
SCORING_BATCH = 1000


def build(shape: tuple[int, ...] = (28, 28), width: int = 64) -> Any:
    """Return the untrained network: from pixels, uint8 [n, *shape], to logits, float32 [n, 10].

    `shape` is rows and columns, and the channels of color images. `width` is the number of units of the dense layer,
    which has most of the parameters and takes the least time: a wide network exchanges more data in each step.
    """
    layers = tf.keras.layers
    rows, columns, *channels = shape
    return tf.keras.Sequential(
        [
            layers.Input(shape, dtype="uint8", name="images"),
            layers.Rescaling(1 / 255),
            layers.Reshape((rows, columns, *(channels or [1]))),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(width, activation="relu"),
            layers.Dense(CLASSES, name="logits"),
        ],
        name="fashion",
    )


def loss_and_accuracy(logits: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the batch's mean cross-entropy and the fraction that is classified correctly."""
    wanted = tf.cast(labels, tf.int64)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits)
    right = tf.cast(tf.equal(tf.argmax(logits, axis=-1), wanted), tf.float32)
    return tf.reduce_mean(losses), tf.reduce_mean(right)


def step_function(
    network: Any,
    optimizer: Any,
    *,
    tape: Callable[[Any], Any] = lambda recorded: recorded,
    summed_replicas: int = 1,
) -> Callable[..., Any]:
    """Return the function that makes one step on one batch and returns its loss and accuracy.

    `tape` wraps the gradient tape: Horovod's averages the gradients of all ranks.
    `summed_replicas` is the number of replicas whose gradients the optimizer adds up.
    """

    def step(batch: tuple[tf.Tensor, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        images, labels = batch
        with tf.GradientTape() as recorded:
            loss, accuracy = loss_and_accuracy(network(images, training=True), labels)
            share_of_loss = loss / summed_replicas
        gradients = tape(recorded).gradient(share_of_loss, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables))
        return loss, accuracy

    return step


def batches(images: Images, batch_size: int, seed: int) -> tf.data.Dataset:
    """Return an endless dataset of batches of a trainer's shard, in a new order in each epoch."""
    if len(images) < batch_size:
        message = (
            f"a trainer's shard of {len(images)} images is smaller than a batch of {batch_size}; reduce 'batch-size'"
        )
        raise ValueError(message)
    dataset = tf.data.Dataset.from_tensor_slices((images.x, images.y))
    dataset = dataset.shuffle(len(images), seed=seed).repeat()
    return dataset.batch(batch_size, drop_remainder=True).prefetch(2)


def local_copy(network: Any) -> Any:
    """Return a copy of the network with variables in this process, wherever the network's variables are placed."""
    copy = type(network).from_config(network.get_config())
    copy.set_weights(network.get_weights())
    return copy


def accuracy(network: Any, images: Images) -> float:
    """Return the fraction of the images that a network in training classifies correctly."""
    copy = local_copy(network)
    pieces = [images.x[first : first + SCORING_BATCH] for first in range(0, len(images), SCORING_BATCH)]
    logits = np.concatenate([copy(tf.constant(piece), training=False).numpy() for piece in pieces])
    return float((logits.argmax(axis=-1) == images.y).mean())


def save(network: Any, folder: Path) -> Path:
    """Write the network as a SavedModel, version 1, below `folder`; return its path.

    A copy in this process is saved, because ps tasks would write their variables to the disks of their own hosts.
    """
    copy = local_copy(network)

    @tf.function(input_signature=[tf.TensorSpec([None, *copy.input_shape[1:]], tf.uint8, name="images")])
    def serve(images: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"logits": copy(images, training=False)}

    path = folder / "1"
    tf.saved_model.save(copy, str(path), signatures=serve)
    return path


def predict(folder: Path, pixels: np.ndarray) -> np.ndarray:
    """Load the only SavedModel below `folder` and return its logits, float32 [n, 10], for the pixels.

    Raise ``FileNotFoundError`` unless there is exactly one.
    """
    found = sorted(path.parent for path in Path(folder).rglob("saved_model.pb"))
    if len(found) != 1:
        message = f"{folder} contains {len(found)} SavedModels, not one"
        raise FileNotFoundError(message)
    loaded = tf.saved_model.load(str(found[0]))
    serve = loaded.signatures["serving_default"]
    pieces = [pixels[first : first + SCORING_BATCH] for first in range(0, len(pixels), SCORING_BATCH)]
    return np.concatenate([serve(images=tf.constant(piece))["logits"].numpy() for piece in pieces])


def score(folder: Path, images: Images) -> float:
    """Return the fraction of the images that the only SavedModel below `folder` classifies correctly."""
    return float((predict(folder, images.x).argmax(axis=-1) == images.y).mean())


def score_archive(archive: Path, images: Images) -> float:
    """Return the same as `score`, for a ``model.tar.gz``."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as members:
        # Not as an argument, which Debian 12's Python 3.11.2 does not have.
        members.extraction_filter = getattr(tarfile, "data_filter", None)
        members.extractall(folder)
        return score(Path(folder), images)


def mean(figures: Iterable[tuple[Any, Any]]) -> tuple[float, float]:
    """Return the mean loss and the mean accuracy of an epoch's steps."""
    losses, accuracies = zip(*figures)
    return float(sum(losses)) / len(losses), float(sum(accuracies)) / len(accuracies)
