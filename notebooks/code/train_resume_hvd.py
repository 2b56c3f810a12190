"""Train the network with Horovod and checkpoints, as train_resume.py does with one trainer.

SIGTERM reaches the ranks in different steps, so they agree by an allreduce whether to stop after this one. Rank 0
saves. In the next run it restores, and the ``sync`` of Horovod's state broadcasts what it has. The rest of
``hvd.elastic`` needs Gloo: under ``mpirun`` the number of ranks is fixed, and a lost rank ends all.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable

import horovod.tensorflow as hvd
import tensorflow as tf
import train_resume

if TYPE_CHECKING:
    import hyperparameters


class Training(train_resume.Training):
    """The network of each rank, with the same state."""

    # Averages the gradients of all ranks.
    tape = staticmethod(hvd.DistributedGradientTape)

    def __init__(self, arguments: hyperparameters.Namespace, shape: tuple[int, ...], strategy: Any) -> None:
        self.trainers = hvd.size()
        self.is_first = hvd.rank() == 0
        super().__init__(arguments, shape, strategy)

    def resume(self) -> None:
        """Restore the newest checkpoint on rank 0, and broadcast its state: new weights, or those restored."""
        if self.is_first:
            super().resume()
        state = hvd.elastic.TensorFlowKerasState(self.network, self.optimizer, step=int(self.step))
        state.sync()
        self.step.assign(state.step)

    def learn(self, batch: Callable[[int], Any]) -> tuple[Any, Any]:
        """Run a step with this rank's batch."""
        return self.function(batch(hvd.rank()))

    def is_interrupted(self) -> bool:
        """Return whether any rank got SIGTERM."""
        return bool(hvd.allreduce(tf.constant(int(super().is_interrupted())), op=hvd.Sum))

    def save(self) -> None:
        """Write a checkpoint on rank 0."""
        if self.is_first:
            super().save()


if __name__ == "__main__":
    hvd.init()
    sys.exit(train_resume.run(Training, train_resume.parse(__doc__)))
