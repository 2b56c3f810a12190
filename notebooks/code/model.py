"""One small convolutional network for images in ten classes: build, train a step, save, read back, score.

Shared by the programs of this folder. It runs on Keras 2, which TensorFlow has up to 2.15 and the package
``tf-keras`` brings from 2.16 on, and on Keras 3: where ``tf-keras`` is not there, or with
``TF_USE_LEGACY_KERAS=0`` in the job's environment.
"""

from __future__ import annotations

import importlib.util
import os
import tarfile
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

# Both are read when TensorFlow is first imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
if importlib.util.find_spec("tf_keras") is not None:
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from images import Images

# Strategies ask datasets in graphs for options, and tf.data warns of the answer; no program here sets any.
warnings.filterwarnings("ignore", message="To make it possible to preserve tf.data options")

CLASSES = 10
#: Models are read back in pieces of this many images, so that memory stays small.
SCORING_BATCH = 1000


def build(shape: tuple[int, ...] = (28, 28), width: int = 64) -> Any:
    """Give the network, untrained: pixels uint8 [n, *shape] in, logits float32 [n, 10] out.

    `shape` is rows and columns, and the channels of coloured images. `width` is the units of the dense layer, which
    has most of the parameters and takes the least time: a wide network has more to exchange for each step.
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
    """Give the batch's mean cross-entropy and the part of it that is classified right."""
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
    """Give the function that makes one step on one batch and returns its loss and accuracy.

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
    """Give endless batches of a trainer's share, in a new order in each epoch."""
    if len(images) < batch_size:
        message = f"a trainer's share of {len(images)} images is less than a batch of {batch_size}"
        raise ValueError(message)
    dataset = tf.data.Dataset.from_tensor_slices((images.x, images.y))
    dataset = dataset.shuffle(len(images), seed=seed).repeat()
    return dataset.batch(batch_size, drop_remainder=True).prefetch(2)


def here(network: Any) -> Any:
    """Give a copy of the network whose variables are this process's own, wherever those of the network live."""
    copy = type(network).from_config(network.get_config())
    copy.set_weights(network.get_weights())
    return copy


def accuracy(network: Any, images: Images) -> float:
    """Give the part of the images that a network under training classifies right."""
    copy = here(network)
    pieces = [images.x[first : first + SCORING_BATCH] for first in range(0, len(images), SCORING_BATCH)]
    logits = np.concatenate([copy(tf.constant(piece), training=False).numpy() for piece in pieces])
    return float((logits.argmax(axis=-1) == images.y).mean())


def save(network: Any, folder: Path) -> Path:
    """Write the network as a SavedModel, version 1, below `folder`; gives its path.

    A copy of this process is written: variables that live on ps tasks would be written by those, each to the disk
    of its own host.
    """
    copy = here(network)

    @tf.function(input_signature=[tf.TensorSpec([None, *copy.input_shape[1:]], tf.uint8, name="images")])
    def serve(images: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"logits": copy(images, training=False)}

    path = folder / "1"
    tf.saved_model.save(copy, str(path), signatures=serve)
    return path


def predict(folder: Path, pixels: np.ndarray) -> np.ndarray:
    """Read the one SavedModel below `folder` and give its logits, float32 [n, 10], for the pixels.

    Raises ``FileNotFoundError`` unless there is exactly one.
    """
    found = sorted(path.parent for path in Path(folder).rglob("saved_model.pb"))
    if len(found) != 1:
        message = f"{folder} holds {len(found)} SavedModels, not one"
        raise FileNotFoundError(message)
    loaded = tf.saved_model.load(str(found[0]))
    serve = loaded.signatures["serving_default"]
    pieces = [pixels[first : first + SCORING_BATCH] for first in range(0, len(pixels), SCORING_BATCH)]
    return np.concatenate([serve(images=tf.constant(piece))["logits"].numpy() for piece in pieces])


def score(folder: Path, images: Images) -> float:
    """Give the part of the images that the one SavedModel below `folder` classifies right."""
    return float((predict(folder, images.x).argmax(axis=-1) == images.y).mean())


def score_archive(archive: Path, images: Images) -> float:
    """Do as `score` does for a ``model.tar.gz``."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive) as members:
        # Not an argument: Debian 12's Python, 3.11.2, knows none.
        members.extraction_filter = getattr(tarfile, "data_filter", None)
        members.extractall(folder)
        return score(Path(folder), images)


def mean(figures: Iterable[tuple[Any, Any]]) -> tuple[float, float]:
    """Average the losses and accuracies of an epoch's steps."""
    losses, accuracies = zip(*figures)
    return float(sum(losses)) / len(losses), float(sum(accuracies)) / len(accuracies)
