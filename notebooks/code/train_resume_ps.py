"""Train the network with ParameterServerStrategy and checkpoints, as train_resume.py does with one trainer.

The chief gets SIGTERM and saves. The servers of workers and ps do not, and go on until it has ended. In a step each
worker applies the gradients of one batch; with several workers their order varies.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable

# Calls to a task that has not started or has ended must not hang. TensorFlow reads this when it is imported.
os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")

import hyperparameters
import model
import tensorflow as tf
import train_resume

#: The chief reads and writes the values of all ps: otherwise each ps would, on the disk of its own host.
OPTIONS = tf.train.CheckpointOptions(experimental_io_device="/job:chief")


class Training(train_resume.Training):
    """The network on the ps, and the coordinator of the workers."""

    def __init__(self, arguments: hyperparameters.Namespace, shape: tuple[int, ...], strategy: Any) -> None:
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
        super().__init__(arguments, shape, strategy)
        # Not before: each batch is a step of the optimizer, with the learning rate of one.
        self.trainers = len(hyperparameters.task()[2]["worker"])

    def resume(self) -> None:
        """Restore the newest checkpoint, if there is one."""
        if self.manager.latest_checkpoint:
            self.state.restore(self.manager.latest_checkpoint, options=OPTIONS)

    def learn(self, batch: Callable[[int], Any]) -> tuple[float, float]:
        """Run a step with one batch on each worker; return the mean loss and accuracy."""
        made = [self.coordinator.schedule(self.function, args=(batch(index),)) for index in range(self.trainers)]
        self.coordinator.join()
        return model.mean(self.coordinator.fetch(made))

    def save(self) -> None:
        """Write a checkpoint on the chief's host."""
        self.manager.save(checkpoint_number=int(self.step), options=OPTIONS)


if __name__ == "__main__":
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    servers = tf.distribute.ParameterServerStrategy(resolver)
    sys.exit(train_resume.run(Training, train_resume.parse(__doc__), servers))
