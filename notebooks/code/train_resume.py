"""Train the network with checkpoints, so that a job can be stopped at any step and the next job resumes from there.

The weights, the optimizer's state and the step are written to the checkpoint directory, which the platform uploads to
``checkpoint_s3_uri``: every ``--checkpoint-steps`` steps, and on SIGTERM. A job that is stopped, or that loses its spot
capacity, gets SIGTERM 120 s before SIGKILL. The next job with the same ``checkpoint_s3_uri`` starts with the last
checkpoint. The order of the images depends only on the seed and the epoch, so it takes the batches that the stopped job
would have taken.
"""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any

import hyperparameters
import model
import numpy as np
import records
import tensorflow as tf

if TYPE_CHECKING:
    import images

#: Exit code of a program that ends because of SIGTERM.
TERMINATED = 128 + signal.SIGTERM


class Interruption:
    """A flag that SIGTERM sets. The loop checks it between steps, so that no step is interrupted."""

    def __init__(self) -> None:
        self.requested = False
        signal.signal(signal.SIGTERM, self._request)

    def _request(self, *_: object) -> None:
        self.requested = True


class Training:
    """The network, its step, and its state on disk."""

    def __init__(self, arguments: hyperparameters.Namespace, shape: tuple[int, ...]) -> None:
        self.network = model.build(shape)
        self.optimizer = tf.keras.optimizers.Adam(arguments.learning_rate)
        # The optimizer's state must exist before it can be restored.
        self.optimizer.build(self.network.trainable_variables)
        self.learn = tf.function(model.step_function(self.network, self.optimizer))
        self.step = tf.Variable(0, dtype=tf.int64)
        state = tf.train.Checkpoint(network=self.network, optimizer=self.optimizer, step=self.step)
        folder = str(hyperparameters.checkpoint_folder())
        self._manager = tf.train.CheckpointManager(state, folder, max_to_keep=2)

    def resume(self) -> None:
        """Restore the newest checkpoint, if there is one."""
        path = self._manager.restore_or_initialize()
        if path:
            print(f"resumed at step {int(self.step)}", flush=True)

    def save(self) -> None:
        """Write a checkpoint, which gets its name when it is complete."""
        self._manager.save(checkpoint_number=int(self.step))


def batch(mine: images.Images, arguments: hyperparameters.Namespace, steps: int, number: int) -> tuple[Any, Any]:
    """Return the batch of step `number`, counted from 0 over all epochs of `steps` steps."""
    epoch, position = divmod(number, steps)
    order = np.random.default_rng((arguments.seed, epoch)).permutation(len(mine))
    chosen = order[position * arguments.batch_size :][: arguments.batch_size]
    return tf.constant(mine.x[chosen]), tf.constant(mine.y[chosen])


def train(training: Training, arguments: hyperparameters.Namespace, interruption: Interruption) -> bool:
    """Run the remaining steps, or those until SIGTERM; return whether all steps were made."""
    mine = records.load(hyperparameters.TRAIN_CHANNEL)
    steps = arguments.steps_per_epoch or len(mine) // arguments.batch_size
    last = arguments.epochs * steps
    training.resume()
    figures = []
    for number in range(int(training.step), last):
        figures.append(training.learn(batch(mine, arguments, steps, number)))
        training.step.assign_add(1)
        # Read the flag once: a signal that arrives after this line takes effect in the next step.
        done, stops = number + 1, interruption.requested
        if done % arguments.checkpoint_steps == 0 or done == last or stops:
            training.save()
            loss, accuracy = model.mean(figures)
            figures = []
            print(f"step {done} of {last}: loss={loss:.4f} accuracy={accuracy:.4f}", flush=True)
        if stops and done < last:
            print(f"stopped at step {done}: the next job goes on from there", flush=True)
            return False
    return True


def main() -> int:
    """Train; after all steps save the model and evaluate the saved model."""
    interruption = Interruption()
    parser = hyperparameters.parser(__doc__)
    parser.add_argument(
        "--checkpoint-steps", type=hyperparameters.positive, default=50, help="steps between two checkpoints"
    )
    arguments = parser.parse_args()
    tf.keras.utils.set_random_seed(arguments.seed)
    held_out = records.held_out()
    training = Training(arguments, held_out.shape)
    if not train(training, arguments, interruption):
        return TERMINATED
    folder = hyperparameters.model_folder()
    model.save(training.network, folder)
    print(f"finished at step {int(training.step)}: accuracy={model.score(folder, held_out):.4f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
