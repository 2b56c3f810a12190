"""Train the network with Horovod: one rank per process, gradients averaged in every step.

The changes that Horovod requires in a program are numbered 1 to 6. The program runs under ``mpirun``, which the
distribution ``{"mpi": {"enabled": True, "processes_per_host": n}}`` starts. In Pipe mode each rank of a host reads
TFRecords from its own channel: ``train_0``, ``train_1`` and so on, or ``train`` if a host has one rank. The program
takes the shape of the images from the eval channel.
"""

from __future__ import annotations

import os
from typing import Any

import hyperparameters
import images
import model
import records
import tensorflow as tf
from progress import Progress

try:
    try:
        # Horovod, with support for Keras 3, which is newer than Horovod.
        import scriptmode_runtime.tensorflow.horovod as hvd
    except ModuleNotFoundError:
        import horovod.tensorflow as hvd
except ImportError as error:
    message = f"train_hvd.py needs Horovod built for this TensorFlow ({tf.__version__}): {error}"
    raise SystemExit(message) from error


def pin_devices() -> None:
    """Limit this rank to one GPU of its host, or to its part of the cores."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")
        return
    # mpirun may already have bound this rank to its cores.
    cores = min(len(os.sched_getaffinity(0)), (os.cpu_count() or 1) // hvd.local_size())
    tf.config.threading.set_intra_op_parallelism_threads(max(1, cores))


def batches(arguments: hyperparameters.Namespace, shape: tuple[int, ...]) -> tuple[tf.data.Dataset, int]:
    """Return this rank's endless dataset of batches, and the steps that all ranks make in an epoch."""
    # Not hvd.local_rank(): the job's hosts may be processes of one machine, each with its own channel.
    hosts = hyperparameters.host_count()
    ranks_of_host = max(1, hvd.size() // hosts)
    trainer = images.Trainer(hvd.rank(), hvd.size(), hvd.rank() % ranks_of_host, ranks_of_host)
    channel = hyperparameters.rank_channel(trainer.local_index, trainer.local_count)
    is_sharded = hyperparameters.is_sharded(channel)
    seed = arguments.seed + hvd.rank()
    if hyperparameters.is_piped(channel):
        steps = hyperparameters.steps_of_pipe(arguments, channel)
        stream = records.stream(channel)
        if not is_sharded:
            stream = stream.shard(hosts, hvd.rank() // ranks_of_host)
        return records.batches(stream, shape, arguments.batch_size, seed=seed), steps
    mine = trainer.share(records.load(channel), sharded=is_sharded)
    # All ranks make every step together, so the number of steps must not depend on the size of a rank's shard.
    size = int(hvd.allreduce(tf.constant(float(len(mine)))))
    return model.batches(mine, arguments.batch_size, seed), arguments.steps_per_epoch or size // arguments.batch_size


class Training:
    """The network, its optimizer and checkpoints, and the step of this rank."""

    def __init__(self, arguments: hyperparameters.Namespace, shape: tuple[int, ...]) -> None:
        self.network = model.build(shape, arguments.width)
        # 3: one step uses a batch of every rank, so the learning rate is multiplied by the number of ranks.
        self.optimizer = tf.keras.optimizers.Adam(arguments.learning_rate * hvd.size())
        self.optimizer.build(self.network.trainable_variables)
        self.epoch = tf.Variable(0, dtype=tf.int64)
        # 4: the tape averages the gradients of all ranks.
        self.step = tf.function(model.step_function(self.network, self.optimizer, tape=hvd.DistributedGradientTape))
        state = tf.train.Checkpoint(network=self.network, optimizer=self.optimizer, epoch=self.epoch)
        folder = str(hyperparameters.checkpoint_folder())
        self.checkpoints = tf.train.CheckpointManager(state, folder, max_to_keep=2)

    def broadcast_state(self) -> None:
        """Broadcast the state of rank 0 to every rank: new weights, or the last checkpoint."""
        if hvd.rank() == 0:
            self.checkpoints.restore_or_initialize()
        # 5: broadcast everything that the steps change.
        hvd.broadcast_variables(self.network.variables, root_rank=0)
        hvd.broadcast_variables(list(self.optimizer.variables), root_rank=0)
        hvd.broadcast_variables([self.epoch], root_rank=0)

    def warm_up(self, batch: Any) -> None:
        """Compile the step by training on one batch."""
        self.step(batch)

    def checkpoint(self) -> None:
        """Write the state at the end of an epoch."""
        self.epoch.assign_add(1)
        # 6: only one rank saves; all ranks have the same state.
        if hvd.rank() == 0:
            self.checkpoints.save()


def train(training: Training, arguments: hyperparameters.Namespace, held_out: images.Images | None) -> Progress:
    """Train for the given epochs; only rank 0, which has the held-out images, prints progress."""
    dataset, steps = batches(arguments, training.network.input_shape[1:])
    iterator = iter(dataset)
    silence = {} if hvd.rank() == 0 else {"write": lambda _: None}
    progress = Progress("horovod", hvd.size(), arguments.batch_size, arguments.batch_size * hvd.size(), **silence)
    training.broadcast_state()
    training.warm_up(next(iterator))
    progress.epochs = int(training.epoch)
    for _ in range(progress.epochs, arguments.epochs):
        progress.begin_epoch()
        figures = model.mean([training.step(next(iterator)) for _ in range(steps)])
        loss, accuracy = hvd.allreduce(tf.constant(figures)).numpy()
        progress.end_epoch(steps, loss=loss, accuracy=accuracy)
        training.checkpoint()
        if held_out and arguments.evaluate_every and progress.epochs % arguments.evaluate_every == 0:
            progress.evaluated(model.accuracy(training.network, held_out))
    return progress


def main() -> None:
    """Train with all ranks; rank 0 saves the model and evaluates the saved model."""
    arguments = hyperparameters.network_parser(__doc__).parse_args()
    hvd.init()  # 1: connect the ranks.
    pin_devices()  # 2: ranks of a host do not share a GPU.
    tf.keras.utils.set_random_seed(arguments.seed + hvd.rank())
    held_out = records.held_out() if hvd.rank() == 0 else None
    shape = hvd.broadcast_object(held_out.shape if held_out else None, root_rank=0)
    training = Training(arguments, shape)
    progress = train(training, arguments, held_out)
    if held_out:
        folder = hyperparameters.model_folder()
        model.save(training.network, folder)
        progress.summarize(model.score(folder, held_out))


if __name__ == "__main__":
    main()
