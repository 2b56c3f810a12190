"""Train the network with MultiWorkerMirroredStrategy and checkpoints, as train_resume.py does with one trainer.

``PreemptionCheckpointHandler`` saves at the notice: the workers agree on a step by TensorFlow's coordination service,
save after it, and exit. The checkpoints in between, for workers that are killed, are written by worker 0.
"""

from __future__ import annotations

import sys
import tempfile
from typing import TYPE_CHECKING, Any, Callable

import tensorflow as tf
import train_resume

if TYPE_CHECKING:
    import hyperparameters


class Training(train_resume.Training):
    """The mirrored network and the handler of the notice."""

    def __init__(self, arguments: hyperparameters.Namespace, shape: tuple[int, ...], strategy: Any) -> None:
        self.trainers = strategy.num_replicas_in_sync
        self.is_first = strategy.cluster_resolver.task_id in (0, None)
        super().__init__(arguments, shape, strategy)

    def folder(self) -> str:
        """Return the checkpoint directory; for the other workers, which must save too, a temporary one."""
        return super().folder() if self.is_first else tempfile.mkdtemp()

    def resume(self) -> None:
        """Restore the newest checkpoint, and watch for SIGTERM from now on."""
        config = tf.distribute.experimental.TerminationConfig(exit_fn=self.exit, save_fn=self.save)
        self.handler = tf.distribute.experimental.PreemptionCheckpointHandler(
            self.strategy.cluster_resolver, self.state, super().folder(), config
        )

    def learn(self, batch: Callable[[int], Any]) -> tuple[Any, Any]:
        """Run a step; before it, save and exit if the workers agreed on that."""
        batches = self.strategy.experimental_distribute_values_from_function(
            lambda context: batch(context.replica_id_in_sync_group)
        )
        return self.handler.run(self.function, batches)

    def is_interrupted(self) -> bool:
        """Return whether the loop must stop: never, because the handler ends the program."""
        return False

    def exit(self) -> None:
        """Stop the program after the checkpoint."""
        self.print_stop()
        sys.exit(train_resume.TERMINATED)


if __name__ == "__main__":
    # Before any other use of TensorFlow: the strategy starts this worker's server.
    ring = tf.distribute.MultiWorkerMirroredStrategy()
    sys.exit(train_resume.run(Training, train_resume.parse(__doc__), ring))
