"""Shared by the programs with ``tf.estimator``: the model function, its progress, and the inputs of an exported model.

``tf.estimator`` is part of TensorFlow up to 2.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

import model
import tensorflow as tf

if TYPE_CHECKING:
    import images
    from progress import Progress


def require() -> None:
    """Require ``tf.estimator``: exit with a message if TensorFlow does not have it, else let it log only errors."""
    if not hasattr(tf, "estimator"):
        message = (
            f"TensorFlow {tf.__version__} has no tf.estimator, which 2.16 removed: use TensorFlow 2.15 "
            "(Python 3.9 to 3.11), or the programs without it: train_mwms.py for mirrored workers, train_ps.py "
            "for parameter servers"
        )
        raise SystemExit(message)
    # Every class of tf.estimator logs that it is deprecated, which would hide the progress.
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)


class ProgressHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """A hook that prints the progress of all trainers, as the master sees it."""

    def __init__(self, progress: Progress, epoch_steps: int, figures: dict[str, tf.Tensor]) -> None:
        self.progress = progress
        self.epoch_steps = epoch_steps
        self.tensors = {**figures, "step": tf.compat.v1.train.get_global_step()}
        self.figures: list[tuple[Any, Any]] = []
        self.began: int | None = None
        self.step = 0
        self.now = 0.0

    def before_run(self, _: Any) -> Any:
        """Request the loss, the accuracy and the number of this step."""
        return tf.compat.v1.train.SessionRunArgs(self.tensors)

    def after_run(self, _: Any, values: Any) -> None:
        """Count the step; the first step, which compiles, only starts the clock."""
        self.step, self.now = int(values.results["step"]), self.progress.clock()
        if self.began is None:
            self.progress.epochs = self.step // self.epoch_steps
            self._begin()
            return
        self.figures.append((values.results["loss"], values.results["accuracy"]))
        if self.step >= (self.progress.epochs + 1) * self.epoch_steps:
            self._end()
            self._begin()

    def end(self, _: Any) -> None:
        """Close the last epoch at the last step of this process; a worker may have made the final step."""
        if self.figures:
            self._end()

    def _begin(self) -> None:
        self.began, self.figures = self.step, []
        self.progress.begin_epoch()

    def _end(self) -> None:
        loss, accuracy = model.mean(self.figures)
        steps = self.step - (self.began or 0)
        self.progress.end_epoch(steps, loss=loss, accuracy=accuracy, ended=self.now)


def model_function(
    progress: Progress,
    epoch_steps: int,
    optimizer: Callable[[], Any],
    scaffold: Callable[[], Any] = lambda: None,
) -> Any:
    """Return the ``model_fn`` of the network.

    `optimizer` and `scaffold` are called in the training graph: they create an optimizer of ``tf.compat.v1`` and, if
    the default is not suitable, the session's scaffold.
    """

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        spec, modes = tf.estimator.EstimatorSpec, tf.estimator.ModeKeys
        network = model.build()
        logits = network(features["images"], training=mode == modes.TRAIN)
        if mode == modes.PREDICT:
            output = tf.estimator.export.PredictOutput({"logits": logits})
            exports = {tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: output}
            return spec(mode, predictions={"logits": logits}, export_outputs=exports)
        loss, accuracy = model.loss_and_accuracy(logits, labels)
        if mode == modes.EVAL:
            right = tf.compat.v1.metrics.accuracy(labels, tf.argmax(logits, axis=-1))
            return spec(mode, loss=loss, eval_metric_ops={"accuracy": right})
        step = optimizer().minimize(
            loss,
            global_step=tf.compat.v1.train.get_global_step(),
            var_list=network.trainable_variables,
        )
        hook = ProgressHook(progress, epoch_steps, {"loss": loss, "accuracy": accuracy})
        return spec(mode, loss=loss, train_op=step, training_chief_hooks=[hook], scaffold=scaffold())

    return model_fn


def receive_images() -> Any:
    """Return the result of ``serving_input_receiver_fn``: unchanged pixels."""
    pixels = tf.compat.v1.placeholder(tf.uint8, [None, 28, 28], name="images")
    return tf.estimator.export.ServingInputReceiver({"images": pixels}, {"images": pixels})


def features(pixels: tf.Tensor, labels: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Return the features with the name that the model function and the exported model use."""
    return {"images": pixels}, labels


def eval_batches(held_out: images.Images) -> tf.data.Dataset:
    """Return one pass over the held-out images."""
    dataset = tf.data.Dataset.from_tensor_slices((held_out.x, held_out.y))
    return dataset.batch(model.SCORING_BATCH).map(features)
