"""Train the network with TensorFlow 2's ParameterServerStrategy: a chief coordinates, workers run the steps.

The chief runs this program. It places the variables on the ps tasks and schedules steps on the workers, which apply
their gradients without waiting for each other. Worker and ps tasks are ordinary TensorFlow servers that the
distribution ``{"parameter_server": {"enabled": True, "coordinator": True}}`` starts. If you start this program by
hand as such a task, it runs the server.

In Pipe mode each worker reads TFRecords from the train channel's pipe on its own host. The program takes the shape of
the images from the eval channel.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

import hyperparameters

# Calls to a task that has not started or has ended must not hang. TensorFlow reads this when it is imported.
os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")

import model
import records
import tensorflow as tf
from progress import Progress

if TYPE_CHECKING:
    import images


class Share(NamedTuple):
    """The training data of the workers."""

    #: Creates a worker's endless dataset; called once and traced, then executed on each worker.
    batches: Callable[[], tf.data.Dataset]
    #: Steps of one worker in an epoch.
    steps: int


def share(arguments: hyperparameters.Namespace, workers: int, shape: tuple[int, ...]) -> Share:
    """Read the train channel: files in the chief, as workers do not run this program; pipes on the workers' hosts."""
    channel = hyperparameters.TRAIN_CHANNEL
    is_sharded = hyperparameters.is_sharded(channel)
    if hyperparameters.is_piped(channel):
        steps = hyperparameters.steps_of_pipe(arguments, channel)
        return Share(lambda: from_pipe(arguments, 1 if is_sharded else workers, shape), steps)
    if is_sharded:
        message = (
            f"channel {channel!r} is ShardedByS3Key, but the chief reads its files for all workers; "
            "use distribution='FullyReplicated', or input_mode='Pipe'"
        )
        raise SystemExit(message)
    whole = records.load(channel)
    steps = arguments.steps_per_epoch or len(whole) // workers // arguments.batch_size
    return Share(lambda: from_memory(whole, arguments, workers), steps)


def from_memory(whole: images.Images, arguments: hyperparameters.Namespace, workers: int) -> tf.data.Dataset:
    """Return a worker's shard of the images that the chief loaded; they are sent to the workers with the function."""
    index = tf.distribute.coordinator.experimental_get_current_worker_index()
    size = len(whole) // workers
    dataset = tf.data.Dataset.from_tensor_slices((whole.x, whole.y))
    dataset = dataset.shard(workers, tf.cast(index, tf.int64))
    dataset = dataset.shuffle(size, seed=arguments.seed).repeat()
    return dataset.batch(arguments.batch_size, drop_remainder=True).prefetch(2)


def from_pipe(arguments: hyperparameters.Namespace, workers: int, shape: tuple[int, ...]) -> tf.data.Dataset:
    """Return the records of the pipe of a worker's host, divided by `workers` if the pipe is not sharded by host."""
    index = tf.distribute.coordinator.experimental_get_current_worker_index()
    stream = records.stream(hyperparameters.TRAIN_CHANNEL)
    if workers > 1:
        stream = stream.shard(workers, tf.cast(index, tf.int64))
    return records.batches(stream, shape, arguments.batch_size, seed=arguments.seed)


class Training:
    """The network on the ps tasks, and the function that a worker runs."""

    def __init__(
        self, strategy: Any, arguments: hyperparameters.Namespace, workers: int, shape: tuple[int, ...]
    ) -> None:
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        self.arguments = arguments
        self.workers = workers
        with strategy.scope():
            self.network = model.build(shape, arguments.width)
            self.optimizer = tf.keras.optimizers.Adam(arguments.learning_rate)
            self.optimizer.build(self.network.trainable_variables)
        step = model.step_function(self.network, self.optimizer)

        @tf.function
        def several_steps(iterator: Any) -> tuple[tf.Tensor, tf.Tensor]:
            # Unrolled, so that several steps need one call to the worker.
            figures = [strategy.run(step, args=(next(iterator),)) for _ in range(arguments.steps_per_closure)]
            losses, accuracies = zip(*figures)
            return tf.add_n(losses) / len(losses), tf.add_n(accuracies) / len(accuracies)

        self.several_steps = several_steps

    def run(self, iterator: Any, closures: int) -> tuple[float, float]:
        """Run the function `closures` times on the workers; return the mean loss and the mean accuracy."""
        scheduled = [self.coordinator.schedule(self.several_steps, args=(iterator,)) for _ in range(closures)]
        self.coordinator.join()
        return model.mean(self.coordinator.fetch(scheduled))


def train(training: Training, mine: Share, held_out: images.Images) -> Progress:
    """Train for the given epochs; an epoch has as many steps as the workers' shards have batches."""
    arguments = training.arguments
    closures = max(1, round(mine.steps * training.workers / arguments.steps_per_closure))
    iterator = iter(training.coordinator.create_per_worker_dataset(mine.batches))
    progress = Progress("parameter_server", training.workers, arguments.batch_size, arguments.batch_size)
    # Each worker compiles the function when it runs it for the first time.
    training.run(iterator, 2 * training.workers)
    for _ in range(arguments.epochs):
        progress.begin_epoch()
        loss, accuracy = training.run(iterator, closures)
        progress.end_epoch(closures * arguments.steps_per_closure, loss=loss, accuracy=accuracy)
        if arguments.evaluate_every and progress.epochs % arguments.evaluate_every == 0:
            progress.evaluated(model.accuracy(training.network, held_out))
    return progress


def parse() -> hyperparameters.Namespace:
    """Parse the hyperparameters."""
    parser = hyperparameters.network_parser(__doc__)
    parser.add_argument(
        "--steps-per-closure",
        type=hyperparameters.positive,
        default=6,
        help="steps that a worker makes in one call of the chief",
    )
    return parser.parse_args()


def main() -> None:
    """Train as the chief, then save the model and evaluate the saved model; or run the server of another task."""
    arguments = parse()
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
        message = (
            "TF_CONFIG has no worker: set distribution={'parameter_server': {'enabled': True, 'coordinator': True}}"
        )
        raise SystemExit(message)
    tf.keras.utils.set_random_seed(arguments.seed)
    held_out = records.held_out()
    mine = share(arguments, workers, held_out.shape)
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    training = Training(strategy, arguments, workers, held_out.shape)
    progress = train(training, mine, held_out)
    folder = hyperparameters.model_folder()
    model.save(training.network, folder)
    progress.summarize(model.score(folder, held_out))


if __name__ == "__main__":
    main()
