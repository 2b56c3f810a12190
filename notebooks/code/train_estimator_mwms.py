"""Train the network with ``tf.estimator`` and MultiWorkerMirroredStrategy: all hosts make every step together.

All hosts run this program as the workers in ``TF_CONFIG``; the distribution ``{"multi_worker_mirrored_strategy":
{"enabled": True}}`` starts them. The first worker writes the checkpoints, evaluates them and exports the model.
``tf.estimator`` is part of TensorFlow up to 2.15.

The channels contain .npz files of 28 x 28 images in ten classes: Fashion-MNIST, or MNIST in its single published file.
"""

from __future__ import annotations

import os
from typing import Any

import estimators
import hyperparameters
import images
import model
import tensorflow as tf
from progress import Progress

#: Key of the final barrier; strategies use smaller keys for their groups of devices.
BARRIER_KEY = 1_000_000
COMMUNICATION = tf.distribute.experimental.CommunicationImplementation


def input_function(mine: images.Images, arguments: hyperparameters.Namespace, *, sharded: bool) -> Any:
    """Return the ``input_fn`` of the training, which the strategy calls on each worker with that worker's index."""

    def input_fn(input_context: Any = None) -> tf.data.Dataset:
        dataset = tf.data.Dataset.from_tensor_slices((mine.x, mine.y))
        if input_context is not None and not sharded:
            dataset = dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
        dataset = dataset.shuffle(len(mine), seed=arguments.seed).repeat()
        return dataset.batch(arguments.batch_size, drop_remainder=True).map(estimators.features).prefetch(2)

    return input_fn


def steps_of_epoch(mine: images.Images, arguments: hyperparameters.Namespace, workers: int, *, sharded: bool) -> int:
    """Return the steps of an epoch, equal on every worker: if one stopped earlier, the others would wait forever."""
    if arguments.steps_per_epoch is not None:
        return int(arguments.steps_per_epoch)
    if sharded:
        message = (
            "the channel 'train' is ShardedByS3Key, and a host does not know the sizes of the other shards: set the "
            "hyperparameter 'steps-per-epoch' to the images of one host divided by the batch size"
        )
        raise SystemExit(message)
    return len(mine) // workers // arguments.batch_size


class Training:
    """The parts of the Estimator, equal on all workers and in the evaluation after the training."""

    def __init__(self, arguments: hyperparameters.Namespace, workers: int) -> None:
        channel = hyperparameters.TRAIN_CHANNEL
        sharded = hyperparameters.is_sharded(channel)
        mine = images.load(hyperparameters.channel(channel), "train")
        self.held_out = images.load(hyperparameters.channel(hyperparameters.EVAL_CHANNEL), "test")
        self.arguments = arguments
        self.epoch_steps = steps_of_epoch(mine, arguments, workers, sharded=sharded)
        self.input_fn = input_function(mine, arguments, sharded=sharded)
        self.progress = Progress(
            "multi_worker_mirrored_estimator", workers, arguments.batch_size, arguments.batch_size * workers
        )
        self.model_fn = estimators.model_function(
            self.progress,
            self.epoch_steps,
            lambda: tf.compat.v1.train.GradientDescentOptimizer(arguments.learning_rate),
        )

    def estimator(self, **configuration: Any) -> Any:
        """Create an Estimator on the job's checkpoints."""
        folder = str(hyperparameters.checkpoint_folder())
        config = tf.estimator.RunConfig(model_dir=folder, tf_random_seed=self.arguments.seed, **configuration)
        return tf.estimator.Estimator(self.model_fn, config=config)

    def eval_batches(self) -> tf.data.Dataset:
        """Return the dataset of held-out images."""
        return estimators.eval_batches(self.held_out)

    def train(self, strategy: Any) -> None:
        """Train on all workers to the end of the last epoch; save checkpoints before the first and after each epoch."""
        estimator = self.estimator(
            train_distribute=strategy,
            save_checkpoints_steps=self.epoch_steps,
            keep_checkpoint_max=self.arguments.epochs + 1,
            log_step_count_steps=self.epoch_steps,
        )
        tf.estimator.train_and_evaluate(
            estimator,
            tf.estimator.TrainSpec(self.input_fn, max_steps=self.arguments.epochs * self.epoch_steps),
            tf.estimator.EvalSpec(self.eval_batches, steps=None),
        )

    def evaluate(self) -> None:
        """Print the loss and the accuracy of each checkpoint on the images of the eval channel."""
        estimator = self.estimator()
        state = tf.train.get_checkpoint_state(estimator.model_dir)
        for path in state.all_model_checkpoint_paths:
            found = estimator.evaluate(self.eval_batches, checkpoint_path=path)
            figures = " ".join(f"{name}={found[name]:.4f}" for name in ("loss", "accuracy"))
            print(f"evaluation: global_step={found['global_step']} {figures}", flush=True)

    def export(self) -> None:
        """Write the model, and evaluate the written model."""
        folder = hyperparameters.model_folder()
        self.estimator().export_saved_model(str(folder), estimators.receive_images)
        self.progress.summarize(model.score(folder, self.held_out))


def wait_for_workers(workers: int) -> None:
    """Wait until every worker calls this function: a worker that ended earlier would look lost to the others."""
    if workers > 1:
        # Not the strategy's own reduction: the Estimator used a copy of the strategy, whose keys it would reuse.
        tf.raw_ops.CollectiveReduceV2(
            input=tf.constant(1.0),
            group_size=workers,
            group_key=BARRIER_KEY,
            instance_key=BARRIER_KEY,
            ordering_token=[],
            merge_op="Add",
            final_op="Id",
        )


def parse() -> hyperparameters.Namespace:
    """Parse the hyperparameters."""
    parser = hyperparameters.parser(__doc__)
    parser.set_defaults(learning_rate=1e-4)
    parser.add_argument(
        "--communication",
        choices=[each.name for each in COMMUNICATION],
        default=COMMUNICATION.AUTO.name,
        help="how workers exchange gradients; with AUTO TensorFlow chooses",
    )
    return parser.parse_args()


def main() -> None:
    """Train as one of the workers; the first worker then evaluates every checkpoint and exports the last."""
    estimators.require()
    arguments = parse()
    _, index, cluster = hyperparameters.task()
    options = tf.distribute.experimental.CommunicationOptions(implementation=COMMUNICATION[arguments.communication])
    # Before any other use of TensorFlow: the strategy starts this worker's server.
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    tf.keras.utils.set_random_seed(arguments.seed)
    workers = max(1, len(cluster.get("worker", ())))
    training = Training(arguments, workers)
    training.train(strategy)
    if index == 0:
        # From here on this worker runs without a cluster.
        os.environ.pop("TF_CONFIG", None)
        training.evaluate()
        training.export()
    wait_for_workers(workers)


if __name__ == "__main__":
    main()
