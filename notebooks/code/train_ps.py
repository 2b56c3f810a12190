"""Train the network with TensorFlow 2's ParameterServerStrategy: a chief coordinates, workers step.

The chief runs this program. It places the variables on the ps tasks and schedules steps on the
workers, which apply their gradients without waiting for one another. Worker and ps tasks are
plain TensorFlow servers that the distribution
``{"parameter_server": {"enabled": True, "coordinator": True}}`` starts; started by hand as such
a task, this program is that server.

In Pipe mode each worker reads TFRecords from the train channel's pipe on its own host. The images of the
eval channel say how large images are.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

import hyperparameters

# Calls to a task that is not up yet, or gone, must not hang. Read when TensorFlow is imported.
os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")

import model
import records
import tensorflow as tf
from progress import Progress

if TYPE_CHECKING:
    import images


class Share(NamedTuple):
    """What the workers step on."""

    #: Makes a worker's endless batches; called once, and what it says is done on each worker.
    batches: Callable[[], tf.data.Dataset]
    #: Of one worker in an epoch.
    steps: int


def share(arguments: hyperparameters.Namespace, workers: int, shape: tuple[int, ...]) -> Share:
    """Read the train channel: its files here, for the workers run no program; its pipes on the workers' hosts."""
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
    """Give a worker's part of what the chief loaded, which goes to the workers with the program."""
    index = tf.distribute.coordinator.experimental_get_current_worker_index()
    size = len(whole) // workers
    dataset = tf.data.Dataset.from_tensor_slices((whole.x, whole.y))
    dataset = dataset.shard(workers, tf.cast(index, tf.int64))
    dataset = dataset.shuffle(size, seed=arguments.seed).repeat()
    return dataset.batch(arguments.batch_size, drop_remainder=True).prefetch(2)


def from_pipe(arguments: hyperparameters.Namespace, workers: int, shape: tuple[int, ...]) -> tf.data.Dataset:
    """Give what the pipe of a worker's host brings; with several workers every such part of it."""
    index = tf.distribute.coordinator.experimental_get_current_worker_index()
    stream = records.stream(hyperparameters.TRAIN_CHANNEL)
    if workers > 1:
        stream = stream.shard(workers, tf.cast(index, tf.int64))
    return records.batches(stream, shape, arguments.batch_size, seed=arguments.seed)


class Training:
    """The network on the ps tasks, and the closure that a worker runs."""

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
            # Unrolled: one call to the worker for all of them.
            figures = [strategy.run(step, args=(next(iterator),)) for _ in range(arguments.steps_per_closure)]
            losses, accuracies = zip(*figures)
            return tf.add_n(losses) / len(losses), tf.add_n(accuracies) / len(accuracies)

        self.several_steps = several_steps

    def run(self, iterator: Any, closures: int) -> tuple[float, float]:
        """Let the workers run the closure so many times in all; gives mean loss and accuracy."""
        scheduled = [self.coordinator.schedule(self.several_steps, args=(iterator,)) for _ in range(closures)]
        self.coordinator.join()
        return model.mean(self.coordinator.fetch(scheduled))


def train(training: Training, mine: Share, held_out: images.Images) -> Progress:
    """Train for the given epochs, each of as many steps as the workers' shares have batches."""
    arguments = training.arguments
    closures = max(1, round(mine.steps * training.workers / arguments.steps_per_closure))
    iterator = iter(training.coordinator.create_per_worker_dataset(mine.batches))
    progress = Progress("parameter_server", training.workers, arguments.batch_size, arguments.batch_size)
    # Each worker compiles the closure when it first runs it.
    training.run(iterator, 2 * training.workers)
    for _ in range(arguments.epochs):
        progress.begin_epoch()
        loss, accuracy = training.run(iterator, closures)
        progress.end_epoch(closures * arguments.steps_per_closure, loss=loss, accuracy=accuracy)
        if arguments.evaluate_every and progress.epochs % arguments.evaluate_every == 0:
            progress.evaluated(model.accuracy(training.network, held_out))
    return progress


def parse() -> hyperparameters.Namespace:
    """Read the hyperparameters."""
    parser = hyperparameters.network_parser(__doc__)
    parser.add_argument(
        "--steps-per-closure",
        type=hyperparameters.positive,
        default=6,
        help="steps that a worker makes for one call of the chief",
    )
    return parser.parse_args()


def main() -> None:
    """Train as the chief, then save the model and score what was saved; or serve another task."""
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
        message = "TF_CONFIG names no worker: distribution={'parameter_server': {'enabled': True, 'coordinator': True}}"
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
