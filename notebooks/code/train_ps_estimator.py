"""Train the network with ``tf.estimator`` and parameter servers: every host trains at its own pace.

The first host runs this program as the master, the others as workers, and each serves as a ps
besides: the cluster that the distribution ``{"parameter_server": {"enabled": True}}`` describes in
``TF_CONFIG``. ``tf.estimator`` is part of TensorFlow up to 2.15.
"""

from __future__ import annotations

import time
from typing import Any

import hyperparameters
import images
import model
import tensorflow as tf
from progress import Progress


def trainer(job: str, index: int, workers: int) -> images.Trainer:
    """Give this process's place among the trainers: the master first, then the workers."""
    return images.Trainer(index + 1 if job == "worker" else 0, workers + 1)


def wait_for_master(ps: str, patience: float = 300) -> None:
    """Return when the master has initialized the variables, of which the first ps holds the step.

    A worker's session that finds them uninitialized looks again after 30 s only, whence the 5 s
    and more that ``RunConfig`` lets workers wait by default. Raises ``TimeoutError`` after
    `patience` seconds.
    """
    deadline = time.monotonic() + patience
    config = tf.compat.v1.ConfigProto(device_filters=["/job:ps/task:0"])
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            ready = tf.compat.v1.is_variable_initialized(tf.compat.v1.train.create_global_step())
        with tf.compat.v1.Session(f"grpc://{ps}", config=config) as session:
            while not session.run(ready):
                if time.monotonic() > deadline:
                    message = f"the master initialized no variables within {patience:.0f} s"
                    raise TimeoutError(message)
                time.sleep(0.2)


class ProgressHook(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Writes the lines of progress, from the steps of all trainers that the master sees."""

    def __init__(self, progress: Progress, epoch_steps: int, figures: dict[str, tf.Tensor]) -> None:
        self.progress = progress
        self.epoch_steps = epoch_steps
        self.tensors = {**figures, "step": tf.compat.v1.train.get_global_step()}
        self.figures: list[tuple[Any, Any]] = []
        self.began: int | None = None
        self.step = 0
        self.now = 0.0

    def before_run(self, _: Any) -> Any:
        """Ask for this step's figures."""
        return tf.compat.v1.train.SessionRunArgs(self.tensors)

    def after_run(self, _: Any, values: Any) -> None:
        """Count the step; the first one, which compiles, only starts the clock."""
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
        """Close the last epoch, whose last step a worker may have made, as of the last step here."""
        if self.figures:
            self._end()

    def _begin(self) -> None:
        self.began, self.figures = self.step, []
        self.progress.begin_epoch()

    def _end(self) -> None:
        loss, accuracy = model.mean(self.figures)
        steps = self.step - (self.began or 0)
        self.progress.end_epoch(steps, loss=loss, accuracy=accuracy, ended=self.now)


def model_function(progress: Progress, epoch_steps: int, learning_rate: float) -> Any:
    """Give the ``model_fn`` of the estimator."""

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
            measured = tf.compat.v1.metrics.mean(accuracy)
            return spec(mode, loss=loss, eval_metric_ops={"accuracy": measured})
        step = tf.compat.v1.train.AdamOptimizer(learning_rate).minimize(
            loss,
            global_step=tf.compat.v1.train.get_global_step(),
            var_list=network.trainable_variables,
        )
        hook = ProgressHook(progress, epoch_steps, {"loss": loss, "accuracy": accuracy})
        # A sharded saver would let each ps write its variables to the disk of its own host.
        saver = tf.compat.v1.train.Saver(sharded=False, max_to_keep=2)
        return spec(
            mode,
            loss=loss,
            train_op=step,
            training_chief_hooks=[hook],
            scaffold=tf.compat.v1.train.Scaffold(saver=saver),
        )

    return model_fn


def receive_images() -> Any:
    """Give the ``serving_input_receiver_fn``'s result: pixels as they are."""
    pixels = tf.compat.v1.placeholder(tf.uint8, [None, 28, 28], name="images")
    return tf.estimator.export.ServingInputReceiver({"images": pixels}, {"images": pixels})


def features(pixels: tf.Tensor, labels: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """Name the pixels as the model function and the exported model call them."""
    return {"images": pixels}, labels


def specs(
    arguments: hyperparameters.Namespace, mine: images.Images, held_out: images.Images, steps: int
) -> tuple[Any, Any]:
    """Say how to train (until the global step `steps`) and how to evaluate."""

    def train_batches() -> tf.data.Dataset:
        return model.batches(mine, arguments.batch_size, arguments.seed).map(features)

    def eval_batches() -> tf.data.Dataset:
        dataset = tf.data.Dataset.from_tensor_slices((held_out.x, held_out.y))
        return dataset.batch(model.SCORING_BATCH).map(features)

    return (
        tf.estimator.TrainSpec(train_batches, max_steps=steps),
        tf.estimator.EvalSpec(eval_batches, steps=None, start_delay_secs=0),
    )


def train(arguments: hyperparameters.Namespace, place: images.Trainer) -> tuple[Any, Progress]:
    """Train until all trainers together have made the steps of all epochs."""
    channel = hyperparameters.TRAIN_CHANNEL
    whole = images.load(hyperparameters.channel(channel))
    mine = place.share(whole, sharded=hyperparameters.is_sharded(channel))
    held_out = images.load(hyperparameters.channel(hyperparameters.EVAL_CHANNEL))
    own_steps = arguments.steps_per_epoch or len(mine) // arguments.batch_size
    epoch_steps = own_steps * place.count
    progress = Progress("parameter_server_estimator", place.count, arguments.batch_size, arguments.batch_size)
    estimator = tf.estimator.Estimator(
        model_function(progress, epoch_steps, arguments.learning_rate),
        config=tf.estimator.RunConfig(
            model_dir=str(hyperparameters.checkpoint_folder()),
            tf_random_seed=arguments.seed,
            save_checkpoints_steps=epoch_steps,
            # wait_for_master knows better.
            experimental_max_worker_delay_secs=0,
        ),
    )
    train_spec, eval_spec = specs(arguments, mine, held_out, arguments.epochs * epoch_steps)
    tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
    return estimator, progress


def main() -> None:
    """Train as the master or a worker; the master saves the model and scores what it saved."""
    if not hasattr(tf, "estimator"):
        message = (
            f"TensorFlow {tf.__version__} has no tf.estimator, which 2.16 removed: use TensorFlow "
            "2.15 (Python 3.9 to 3.11), or train_ps.py with the coordinator"
        )
        raise SystemExit(message)
    # Every class of the Estimator is deprecated; saying so each time would hide the progress.
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    arguments = hyperparameters.parser(__doc__).parse_args()
    job, index, cluster = hyperparameters.task()
    place = trainer(job, index, len(cluster.get("worker", ())))
    if job == "worker":
        wait_for_master(cluster["ps"][0])
    estimator, progress = train(arguments, place)
    if place.index == 0:
        folder = hyperparameters.model_folder()
        estimator.export_saved_model(str(folder), receive_images)
        held_out = images.load(hyperparameters.channel(hyperparameters.EVAL_CHANNEL))
        progress.summarize(model.score(folder, held_out))


if __name__ == "__main__":
    main()
