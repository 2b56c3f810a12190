"""Train the network with TensorFlow 2's ParameterServerStrategy: a chief coordinates, workers step.

The chief runs this program. It places the variables on the ps tasks and schedules steps on the
workers, which apply their gradients without waiting for one another. Worker and ps tasks are
plain TensorFlow servers that the distribution
``{"parameter_server": {"enabled": True, "coordinator": True}}`` starts; started by hand as such
a task, this program is that server.
"""

from __future__ import annotations

import os
from typing import Any

import hyperparameters
import images

# Calls to a task that is not up yet, or gone, must not hang. Read when TensorFlow is imported.
os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")

import model
import tensorflow as tf
from progress import Progress


def load_all() -> images.Images:
    """Load the whole train channel: the workers run no program, so the chief hands them theirs."""
    channel = hyperparameters.TRAIN_CHANNEL
    if hyperparameters.is_sharded(channel):
        message = (
            f"channel {channel!r} is ShardedByS3Key, but the chief reads it for all workers; "
            "use distribution='FullyReplicated'"
        )
        raise SystemExit(message)
    return images.load(hyperparameters.channel(channel))


class Training:
    """The network on the ps tasks, and the closure that a worker runs."""

    def __init__(self, strategy: Any, arguments: hyperparameters.Namespace, workers: int) -> None:
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self.arguments = arguments
        self.workers = workers
        with strategy.scope():
            self.network = model.build()
            self.optimizer = tf.keras.optimizers.Adam(arguments.learning_rate)
            self.optimizer.build(self.network.trainable_variables)
        step = model.step_function(self.network, self.optimizer)

        @tf.function
        def several_steps(iterator: Any) -> tuple[tf.Tensor, tf.Tensor]:
            # Unrolled: one call to the worker for all of them.
            figures = [strategy.run(step, args=(next(iterator),)) for _ in range(arguments.steps_per_closure)]
            losses, accuracies = zip(*figures)
            return tf.add_n(losses) / len(losses), tf.add_n(accuracies) / len(accuracies)

        self.several_steps = several_steps

    def iterator(self, whole: images.Images) -> Any:
        """Give the iterator that has, on each worker, that worker's share."""
        arguments, workers = self.arguments, self.workers

        def worker_batches() -> tf.data.Dataset:
            index = tf.distribute.coordinator.experimental_get_current_worker_index()
            size = len(whole) // workers
            dataset = tf.data.Dataset.from_tensor_slices((whole.x, whole.y))
            dataset = dataset.shard(workers, tf.cast(index, tf.int64))
            dataset = dataset.shuffle(size, seed=arguments.seed).repeat()
            return dataset.batch(arguments.batch_size, drop_remainder=True).prefetch(2)

        return iter(self.coordinator.create_per_worker_dataset(worker_batches))

    def run(self, iterator: Any, closures: int) -> tuple[float, float]:
        """Let the workers run the closure so many times in all; gives mean loss and accuracy."""
        scheduled = [self.coordinator.schedule(self.several_steps, args=(iterator,)) for _ in range(closures)]
        self.coordinator.join()
        return model.mean(self.coordinator.fetch(scheduled))


def train(training: Training, whole: images.Images) -> Progress:
    """Train for the given epochs, each of as many steps as the train channel has batches."""
    arguments = training.arguments
    own_steps = arguments.steps_per_epoch or len(whole) // training.workers // arguments.batch_size
    closures = max(1, round(own_steps * training.workers / arguments.steps_per_closure))
    iterator = training.iterator(whole)
    progress = Progress("parameter_server", training.workers, arguments.batch_size, arguments.batch_size)
    # Each worker compiles the closure when it first runs it.
    training.run(iterator, 2 * training.workers)
    for _ in range(arguments.epochs):
        progress.begin_epoch()
        loss, accuracy = training.run(iterator, closures)
        progress.end_epoch(closures * arguments.steps_per_closure, loss=loss, accuracy=accuracy)
    return progress


def main() -> None:
    """Train as the chief, then save the model and score what was saved; or serve another task."""
    parser = hyperparameters.parser(__doc__)
    parser.add_argument(
        "--steps-per-closure",
        type=hyperparameters.positive,
        default=6,
        help="steps that a worker makes for one call of the chief",
    )
    arguments = parser.parse_args()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in {"worker", "ps"}:
        tf.distribute.Server(
            resolver.cluster_spec(),
            job_name=resolver.task_type,
            task_index=resolver.task_id,
            protocol="grpc",
        ).join()
    workers = len(resolver.cluster_spec().as_dict().get("worker", ()))
    if not workers:
        message = "TF_CONFIG names no worker: distribution={'parameter_server': {'enabled': True, 'coordinator': True}}"
        raise SystemExit(message)
    tf.keras.utils.set_random_seed(arguments.seed)
    whole = load_all()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    training = Training(strategy, arguments, workers)
    progress = train(training, whole)
    folder = hyperparameters.model_folder()
    model.save(training.network, folder)
    held_out = images.load(hyperparameters.channel(hyperparameters.EVAL_CHANNEL))
    progress.summarize(model.score(folder, held_out))


if __name__ == "__main__":
    main()
