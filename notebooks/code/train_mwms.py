"""Train the network with MultiWorkerMirroredStrategy: all hosts make every step together.

All hosts run this program as the workers in ``TF_CONFIG``; the distribution
``{"multi_worker_mirrored_strategy": {"enabled": True}}`` starts them.
"""

from __future__ import annotations

from typing import Any

import hyperparameters
import images
import model
import tensorflow as tf
from progress import Progress


class Training:
    """The mirrored network and the functions that all replicas run together."""

    def __init__(self, strategy: Any, arguments: hyperparameters.Namespace) -> None:
        self.strategy = strategy
        replicas = strategy.num_replicas_in_sync
        with strategy.scope():
            self.network = model.build()
            # One step uses a batch of every replica, so the learning rate is multiplied by their number.
            self.optimizer = tf.keras.optimizers.Adam(arguments.learning_rate * replicas)
            self.optimizer.build(self.network.trainable_variables)
        step = model.step_function(self.network, self.optimizer, summed_replicas=replicas)

        @tf.function
        def mirrored_step(batch: Any) -> Any:
            figures = strategy.run(step, args=(batch,))
            return tuple(strategy.experimental_local_results(each)[0] for each in figures)

        @tf.function
        def average(value: tf.Tensor) -> tf.Tensor:
            of_replicas = strategy.run(tf.identity, args=(value,))
            return strategy.reduce(tf.distribute.ReduceOp.MEAN, of_replicas, axis=None)

        self.step = mirrored_step
        self.average = average

    def iterator(self, mine: images.Images, arguments: hyperparameters.Namespace, index: int) -> Any:
        """Return the iterator over this worker's shard, with one batch for each of its replicas."""

        def worker_batches(_: Any) -> tf.data.Dataset:
            return model.batches(mine, arguments.batch_size, arguments.seed + index)

        return iter(self.strategy.distribute_datasets_from_function(worker_batches))


def share(index: int, workers: int) -> images.Images:
    """Load this worker's shard of the train channel."""
    channel = hyperparameters.TRAIN_CHANNEL
    whole = images.load(hyperparameters.channel(channel))
    trainer = images.Trainer(index, workers)
    return trainer.share(whole, sharded=hyperparameters.is_sharded(channel))


def train(training: Training, arguments: hyperparameters.Namespace, index: int, workers: int) -> Progress:
    """Train for the given epochs; only worker 0 prints progress, and writes it for TensorBoard."""
    mine = share(index, workers)
    replicas = training.strategy.num_replicas_in_sync
    # All workers make every step together, so the number of steps must not depend on the size of a worker's shard.
    size = float(training.average(tf.constant(float(len(mine)))))
    steps = arguments.steps_per_epoch or int(size * workers) // replicas // arguments.batch_size
    iterator = training.iterator(mine, arguments, index)
    silence = {} if index == 0 else {"write": lambda _: None}
    progress = Progress(
        "multi_worker_mirrored",
        replicas,
        arguments.batch_size,
        arguments.batch_size * replicas,
        **silence,
    )
    writer = tf.summary.create_file_writer(hyperparameters.output_folder()) if index == 0 else None
    training.step(next(iterator))  # Compiles the step.
    for _ in range(arguments.epochs):
        progress.begin_epoch()
        figures = model.mean([training.step(next(iterator)) for _ in range(steps)])
        loss, accuracy = training.average(tf.constant(figures)).numpy()
        progress.end_epoch(steps, loss=loss, accuracy=accuracy)
        if writer is not None:
            with writer.as_default(progress.steps):
                tf.summary.scalar("loss", loss)
                tf.summary.scalar("accuracy", accuracy)
    return progress


def main() -> None:
    """Train with all workers; worker 0 saves the model and evaluates the saved model."""
    arguments = hyperparameters.parser(__doc__).parse_args()
    _, index, cluster = hyperparameters.task()
    # Before any other use of TensorFlow: the strategy starts this worker's server.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf.keras.utils.set_random_seed(arguments.seed)
    training = Training(strategy, arguments)
    progress = train(training, arguments, index, max(1, len(cluster.get("worker", ()))))
    if index == 0:
        folder = hyperparameters.model_folder()
        model.save(training.network, folder)
        held_out = images.load(hyperparameters.channel(hyperparameters.EVAL_CHANNEL))
        progress.summarize(model.score(folder, held_out))
    # A barrier: a worker that ended earlier would look lost to the others.
    training.average(tf.constant(0.0))


if __name__ == "__main__":
    main()
