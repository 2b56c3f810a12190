"""Train the network on several workers with ``model.fit``, which Keras 2 supports and Keras 3 does not.

All hosts run this program as the workers in ``TF_CONFIG``. With Keras 3 the job fails, and its failure reason says
what to do: use Keras 2 of the package ``tf-keras``, or a custom training loop such as train_mwms.py.

``BackupAndRestore`` saves every ``--checkpoint-steps`` steps. Its ``save_before_preemption`` does nothing outside of
Google's cloud, so a callback saves at SIGTERM. The next run goes on with the next step; its dataset begins again.
"""

from __future__ import annotations

import sys
from typing import Any

import hyperparameters
import images
import model
import tensorflow as tf
import train_resume


class Notice(tf.keras.callbacks.Callback):  # type: ignore[misc]
    """A callback that lets all workers save and exit after the same step once one got SIGTERM; follows the backup's."""

    def __init__(self, strategy: Any, backup: Any, log_steps: int) -> None:
        super().__init__()
        self.interruption = train_resume.Interruption()
        self.backup, self.log_steps, self.stops = backup, log_steps, False
        self.is_first = strategy.cluster_resolver.task_id in (0, None)

        @tf.function
        def total(value: tf.Tensor) -> tf.Tensor:
            of_replicas = strategy.run(tf.identity, args=(value,))
            return strategy.reduce(tf.distribute.ReduceOp.SUM, of_replicas, axis=None)

        self.total = total

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002 - Keras passes them by name
        """Print the step that was restored."""
        self.print_step("resumed at")

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Configure the backup to save after this step if any worker got SIGTERM."""
        if self.total(tf.constant(float(self.interruption.requested))) > 0:
            self.backup.save_freq, self.stops = 1, True

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Exit after the backup was saved."""
        if self.stops or int(self.model.optimizer.iterations.numpy()) % self.log_steps == 0:
            self.print_step("trained")
        if self.stops:
            self.print_step("stopped at")
            sys.exit(train_resume.TERMINATED)

    def print_step(self, what: str) -> None:
        """Print the number of steps that were made, if there is one, once for all workers."""
        step = int(self.model.optimizer.iterations.numpy())
        if step and self.is_first:
            print(f"{what} step {step}", flush=True)


def main() -> None:
    """Train the network with ``fit``, and print the accuracy of the last epoch."""
    arguments = train_resume.parse(__doc__)
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    train = images.load(hyperparameters.channel(hyperparameters.TRAIN_CHANNEL))
    batches = model.batches(train, arguments.batch_size * strategy.num_replicas_in_sync, arguments.seed)
    steps = arguments.steps_per_epoch or len(train) // arguments.batch_size // strategy.num_replicas_in_sync
    tf.keras.utils.set_random_seed(arguments.seed)
    with strategy.scope():
        network = model.build()
        network.compile(
            optimizer=tf.keras.optimizers.Adam(arguments.learning_rate),
            loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
    backup = tf.keras.callbacks.BackupAndRestore(
        str(hyperparameters.checkpoint_folder()), save_freq=arguments.checkpoint_steps
    )
    notice = Notice(strategy, backup, arguments.log_steps)
    fitted = network.fit(batches, epochs=arguments.epochs, steps_per_epoch=steps, verbose=2, callbacks=[backup, notice])
    # Without epochs if an earlier run made all of them.
    accuracy = fitted.history.get("accuracy", [float("nan")])[-1]
    print(f"summary: layout=fit trainers={strategy.num_replicas_in_sync} accuracy={accuracy:.4f}", flush=True)


if __name__ == "__main__":
    main()
