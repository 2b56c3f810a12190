"""Train the network with ``tf.estimator`` and parameter servers: every host trains at its own pace.

The first host runs this program as the master, the others run it as workers, and each host also runs a ps: the
cluster that the distribution ``{"parameter_server": {"enabled": True}}`` describes in ``TF_CONFIG``. ``tf.estimator``
is part of TensorFlow up to 2.15.
"""

from __future__ import annotations

import time
from typing import Any

import estimators
import hyperparameters
import images
import model
import tensorflow as tf
from progress import Progress


def trainer(job: str, index: int, workers: int) -> images.Trainer:
    """Return this process's index among the trainers: the master first, then the workers."""
    return images.Trainer(index + 1 if job == "worker" else 0, workers + 1)


def wait_for_master(ps: str, timeout: float = 300) -> None:
    """Wait until the master has initialized the variables; the first ps stores the global step.

    A worker's session that finds them uninitialized checks again only after 30 s; this is why ``RunConfig`` by default
    delays workers by 5 s and more. Raise ``TimeoutError`` after `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    config = tf.compat.v1.ConfigProto(device_filters=["/job:ps/task:0"])
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            ready = tf.compat.v1.is_variable_initialized(tf.compat.v1.train.create_global_step())
        with tf.compat.v1.Session(f"grpc://{ps}", config=config) as session:
            while not session.run(ready):
                if time.monotonic() > deadline:
                    message = f"the master did not initialize the variables within {timeout:.0f} s"
                    raise TimeoutError(message)
                time.sleep(0.2)


def specs(
    arguments: hyperparameters.Namespace, mine: images.Images, held_out: images.Images, steps: int
) -> tuple[Any, Any]:
    """Return the specs of the training (until the global step `steps`) and of the evaluation."""

    def train_batches() -> tf.data.Dataset:
        return model.batches(mine, arguments.batch_size, arguments.seed).map(estimators.features)

    return (
        tf.estimator.TrainSpec(train_batches, max_steps=steps),
        tf.estimator.EvalSpec(lambda: estimators.eval_batches(held_out), steps=None, start_delay_secs=0),
    )


def unsharded() -> Any:
    """Create a scaffold that writes unsharded checkpoints; else each ps writes its variables to its own host's disk."""
    return tf.compat.v1.train.Scaffold(saver=tf.compat.v1.train.Saver(sharded=False, max_to_keep=2))


def train(arguments: hyperparameters.Namespace, position: images.Trainer) -> tuple[Any, Progress]:
    """Train until all trainers together have made the steps of all epochs."""
    channel = hyperparameters.TRAIN_CHANNEL
    whole = images.load(hyperparameters.channel(channel))
    mine = position.share(whole, sharded=hyperparameters.is_sharded(channel))
    held_out = images.load(hyperparameters.channel(hyperparameters.EVAL_CHANNEL))
    own_steps = arguments.steps_per_epoch or len(mine) // arguments.batch_size
    epoch_steps = own_steps * position.count
    progress = Progress("parameter_server_estimator", position.count, arguments.batch_size, arguments.batch_size)
    estimator = tf.estimator.Estimator(
        estimators.model_function(
            progress,
            epoch_steps,
            lambda: tf.compat.v1.train.AdamOptimizer(arguments.learning_rate),
            unsharded,
        ),
        config=tf.estimator.RunConfig(
            model_dir=str(hyperparameters.checkpoint_folder()),
            tf_random_seed=arguments.seed,
            save_checkpoints_steps=epoch_steps,
            # Not needed, because wait_for_master waits exactly as long as necessary.
            experimental_max_worker_delay_secs=0,
        ),
    )
    train_spec, eval_spec = specs(arguments, mine, held_out, arguments.epochs * epoch_steps)
    tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)
    return estimator, progress


def main() -> None:
    """Train as the master or a worker; the master saves the model and evaluates the saved model."""
    estimators.require()
    arguments = hyperparameters.parser(__doc__).parse_args()
    job, index, cluster = hyperparameters.task()
    position = trainer(job, index, len(cluster.get("worker", ())))
    if job == "worker":
        wait_for_master(cluster["ps"][0])
    estimator, progress = train(arguments, position)
    if position.index == 0:
        folder = hyperparameters.model_folder()
        estimator.export_saved_model(str(folder), estimators.receive_images)
        held_out = images.load(hyperparameters.channel(hyperparameters.EVAL_CHANNEL))
        progress.summarize(model.score(folder, held_out))


if __name__ == "__main__":
    main()
