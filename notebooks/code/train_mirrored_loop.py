"""Train the network in a custom training loop with MirroredStrategy: one process, all devices make every step together.

The devices are the host's GPUs. A host without GPUs splits its CPU into ``--devices`` logical devices: everything
works as on that many GPUs, but is not faster. ``--loop`` selects how an epoch iterates over the data. The strategy
keeps a copy of the network on each device, and its checkpoints are restored without the strategy.
"""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import Any, Callable

import hyperparameters
import images
import model
import tensorflow as tf
from progress import Progress

#: Epochs between two checkpoints; there is also one after the last epoch.
CHECKPOINT_EVERY = 2


def devices(count: int) -> list[str]:
    """Return the GPUs, or else `count` logical devices on the CPU, which TensorFlow must not have used before."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        return [f"GPU:{index}" for index in range(len(gpus))]
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
    return [f"CPU:{index}" for index in range(count)]


def losses(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Return the cross-entropy of each image; the loop divides their sum by the global batch size."""
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.cast(labels, tf.int64), logits=logits)


class Training:
    """The network on every device, with the functions of a step and of an epoch."""

    def __init__(self, strategy: Any, arguments: hyperparameters.Namespace) -> None:
        self.strategy = strategy
        self.global_batch = arguments.batch_size * strategy.num_replicas_in_sync
        # Variables created in the scope have a copy on each device; every step changes all copies equally.
        with strategy.scope():
            self.network = model.build()
            # One step uses a batch of every replica, so the learning rate is multiplied by their number.
            rate = arguments.learning_rate * strategy.num_replicas_in_sync
            self.optimizer = tf.keras.optimizers.Adam(rate)
            self.optimizer.build(self.network.trainable_variables)
            self.train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
            self.eval_accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
            self.eval_loss = tf.keras.metrics.Mean()
        self.epoch = tf.Variable(0, dtype=tf.int64)

    def replica_step(self, batch: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """Train on one device's part of the batch; return its part of the loss."""
        pixels, labels = batch
        with tf.GradientTape() as tape:
            logits = self.network(pixels, training=True)
            # Divided by the images of all devices, because the gradients of the devices are added up.
            loss = tf.nn.compute_average_loss(losses(logits, labels), global_batch_size=self.global_batch)
        gradients = tape.gradient(loss, self.network.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.network.trainable_variables))
        self.train_accuracy.update_state(labels, logits)
        return loss

    def replica_evaluation(self, batch: tuple[tf.Tensor, tf.Tensor]) -> None:
        """Add one device's part of the batch to the metrics."""
        pixels, labels = batch
        logits = self.network(pixels, training=False)
        self.eval_loss.update_state(losses(logits, labels))
        self.eval_accuracy.update_state(labels, logits)

    def mirrored_step(self, batch: Any) -> tf.Tensor:
        """Run a step on every device with its part of the batch; return the loss of the whole batch."""
        parts = self.strategy.run(self.replica_step, args=(batch,))
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, parts, axis=None)

    @tf.function
    def step(self, batch: Any) -> tf.Tensor:
        """Run one step, compiled."""
        return self.mirrored_step(batch)

    @tf.function
    def whole_epoch(self, batches: Any) -> tf.Tensor:
        """Run all steps of an epoch, compiled with the loop; return the sum of their losses."""
        total = 0.0
        for batch in batches:
            total += self.mirrored_step(batch)
        return total

    def each_batch(self, batches: Any) -> tf.Tensor:
        """Iterate over the distributed dataset with a `for` loop; return the sum of the losses."""
        return sum(self.step(batch) for batch in batches)

    def iterator(self, batches: Any) -> tf.Tensor:
        """Call `next` on an iterator, as a loop that may stop at any batch; return the sum of the losses."""
        total, each = 0.0, iter(batches)
        with suppress(StopIteration):
            while True:
                total += self.step(next(each))
        return total

    @tf.function
    def evaluation(self, batches: Any) -> None:
        """Evaluate all batches on the devices; the metrics collect the results."""
        for batch in batches:
            self.strategy.run(self.replica_evaluation, args=(batch,))

    def evaluate(self, batches: Any) -> dict[str, float]:
        """Return the mean loss and the accuracy on the batches."""
        metrics = {"loss": self.eval_loss, "accuracy": self.eval_accuracy}
        for metric in metrics.values():
            metric.reset_state()
        self.evaluation(batches)
        return {name: float(metric.result()) for name, metric in metrics.items()}


#: The implementations of an epoch, by their names in ``--loop``.
LOOPS: dict[str, Callable[[Training, Any], tf.Tensor]] = {
    "each-batch": Training.each_batch,
    "iterator": Training.iterator,
    "function": Training.whole_epoch,
}


def loop_names(text: str) -> list[str]:
    """Parse names of loops, separated by commas; raise ``argparse.ArgumentTypeError`` for an unknown name."""
    names = text.split(",")
    for name in names:
        if name not in LOOPS:
            message = f"{name!r} is not one of {', '.join(LOOPS)}"
            raise argparse.ArgumentTypeError(message)
    return names


class Checkpoints:
    """Checkpoints of the training's state, every second epoch, in the directory that the platform uploads."""

    def __init__(self, training: Training) -> None:
        self.epoch = training.epoch
        state = tf.train.Checkpoint(network=training.network, optimizer=training.optimizer, epoch=training.epoch)
        folder = str(hyperparameters.checkpoint_folder())
        self.manager = tf.train.CheckpointManager(state, folder, max_to_keep=2, step_counter=training.epoch)
        self.manager.restore_or_initialize()

    def epoch_ended(self, epochs: int) -> None:
        """Count the epoch, and save a checkpoint if it is due; `epochs` is the number of all epochs."""
        self.epoch.assign_add(1)
        done = int(self.epoch)
        if done % CHECKPOINT_EVERY == 0 or done == epochs:
            path = self.manager.save(checkpoint_number=done)
            print(f"checkpoint {done}: {path}", flush=True)


def restore(checkpoint: str) -> Any:
    """Restore the network of a checkpoint in this process, on one device and without a strategy."""
    network = model.build()
    status = tf.train.Checkpoint(network=network).restore(checkpoint)
    # The checkpoint also contains the optimizer, which is not restored; every variable of the network must be.
    status.assert_existing_objects_matched().expect_partial()
    return network


def accuracy(network: Any, held_out: images.Images) -> float:
    """Return the fraction of the images that a network on one device classifies correctly."""
    metric = tf.keras.metrics.SparseCategoricalAccuracy()

    @tf.function
    def add(pixels: tf.Tensor, labels: tf.Tensor) -> None:
        metric.update_state(labels, network(pixels, training=False))

    for pixels, labels in tf.data.Dataset.from_tensor_slices((held_out.x, held_out.y)).batch(model.SCORING_BATCH):
        add(pixels, labels)
    return float(metric.result())


def distributed(training: Training, mine: images.Images, *, seed: int | None = None, steps: int | None = None) -> Any:
    """Return the batches of an epoch, each divided among the devices; with a seed in a new order each time."""
    dataset = tf.data.Dataset.from_tensor_slices((mine.x, mine.y))
    if seed is not None:
        dataset = dataset.shuffle(len(mine), seed=seed)
    # The remainder is not dropped: the last batch is smaller and has less weight in the loss.
    dataset = dataset.batch(training.global_batch).take(steps or -1).prefetch(2)
    return training.strategy.experimental_distribute_dataset(dataset)


def train(training: Training, arguments: hyperparameters.Namespace, held_out: images.Images) -> Progress:
    """Train the epochs that remain after the restored checkpoint, and print the evaluation of each."""
    mine = images.load(hyperparameters.channel(hyperparameters.TRAIN_CHANNEL), "train")
    batches = distributed(training, mine, seed=arguments.seed, steps=arguments.steps_per_epoch)
    steps = min(-(-len(mine) // training.global_batch), arguments.steps_per_epoch or len(mine))
    batches_of_images = min(len(mine) / training.global_batch, steps)
    unseen = distributed(training, held_out)
    replicas = training.strategy.num_replicas_in_sync
    progress = Progress("mirrored_loop", replicas, arguments.batch_size, training.global_batch)
    checkpoints = Checkpoints(training)
    progress.epochs = int(training.epoch)
    for number in range(progress.epochs, arguments.epochs):
        name = arguments.loop[number % len(arguments.loop)]
        training.train_accuracy.reset_state()
        progress.begin_epoch()
        total = float(LOOPS[name](training, batches))
        progress.end_epoch(steps, loss=total / batches_of_images, accuracy=float(training.train_accuracy.result()))
        found = training.evaluate(unseen)
        print(
            f"evaluation {number + 1}: loop={name} loss={found['loss']:.4f} accuracy={found['accuracy']:.4f}",
            flush=True,
        )
        checkpoints.epoch_ended(arguments.epochs)
    return progress


def parse() -> hyperparameters.Namespace:
    """Parse the hyperparameters."""
    parser = hyperparameters.parser(__doc__)
    parser.add_argument(
        "--devices",
        type=hyperparameters.positive,
        default=2,
        help="number of logical devices on a host without GPUs",
    )
    parser.add_argument(
        "--loop",
        type=loop_names,
        default=["function"],
        help=f"how to iterate over an epoch: {', '.join(LOOPS)}; several names, separated by commas, alternate",
    )
    return parser.parse_args()


def main() -> None:
    """Train on all devices; then restore the last checkpoint without the strategy, evaluate and save it."""
    arguments = parse()
    strategy = tf.distribute.MirroredStrategy(devices(arguments.devices))
    tf.keras.utils.set_random_seed(arguments.seed)
    held_out = images.load(hyperparameters.channel(hyperparameters.EVAL_CHANNEL), "test")
    training = Training(strategy, arguments)
    progress = train(training, arguments, held_out)
    checkpoint = tf.train.latest_checkpoint(str(hyperparameters.checkpoint_folder()))
    network = restore(checkpoint)
    print(f"restored {checkpoint}: accuracy={accuracy(network, held_out):.4f}", flush=True)
    folder = hyperparameters.model_folder()
    model.save(network, folder)
    progress.summarize(model.score(folder, held_out))


if __name__ == "__main__":
    main()
