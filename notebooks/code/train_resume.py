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
from typing import Any, Callable

import hyperparameters
import images
import model
import numpy as np
import records
import tensorflow as tf

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
    """The network, its step, and its state on disk; subclasses are for jobs with several trainers."""

    #: Number of batches in a step, one for each trainer.
    trainers = 1
    #: Whether this process prints the progress and saves the model.
    is_first = True
    #: Wraps the gradient tape.
    tape: Callable[[Any], Any] = staticmethod(lambda recorded: recorded)

    def __init__(self, arguments: hyperparameters.Namespace, shape: tuple[int, ...], strategy: Any) -> None:
        self.interruption = Interruption()
        self.strategy = strategy
        with strategy.scope():
            self.network = model.build(shape)
            # A step uses a batch of every trainer, so the learning rate is multiplied by their number.
            self.optimizer = tf.keras.optimizers.Adam(arguments.learning_rate * self.trainers)
            # The optimizer's state must exist before it can be restored.
            self.optimizer.build(self.network.trainable_variables)
        self.step = tf.Variable(0, dtype=tf.int64)
        self.state = tf.train.Checkpoint(network=self.network, optimizer=self.optimizer, step=self.step)
        # With this name the log of the next run tells how many steps were lost.
        self.manager = tf.train.CheckpointManager(self.state, self.folder(), max_to_keep=2, checkpoint_name="step")
        self.function = self.compiled()

    def folder(self) -> str:
        """Return where this process writes checkpoints."""
        return str(hyperparameters.checkpoint_folder())

    def compiled(self) -> Callable[..., Any]:
        """Return the compiled function of a step on this process's batches."""
        replicas = self.strategy.num_replicas_in_sync
        step = model.step_function(self.network, self.optimizer, tape=self.tape, summed_replicas=replicas)

        @tf.function
        def of_strategy(batches: Any) -> Any:
            figures = self.strategy.run(step, args=(batches,))
            return tuple(self.strategy.experimental_local_results(each)[0] for each in figures)

        return of_strategy

    def resume(self) -> None:
        """Restore the newest checkpoint, if there is one."""
        self.manager.restore_or_initialize()

    def learn(self, batch: Callable[[int], Any]) -> tuple[Any, Any]:
        """Run a step and return its loss and accuracy; `batch` returns the batch of a trainer by its index."""
        return self.function(batch(0))

    def is_interrupted(self) -> bool:
        """Return whether the training stops after this step."""
        return self.interruption.requested

    def save(self) -> None:
        """Write a checkpoint, which gets its name when it is complete."""
        self.manager.save(checkpoint_number=int(self.step))

    def print_stop(self) -> None:
        """Print the step at which the training stops."""
        if self.is_first:
            print(f"stopped at step {int(self.step)}: the next job goes on from there", flush=True)


def batch(
    mine: images.Images, arguments: hyperparameters.Namespace, steps: int, number: int, trainer: images.Trainer
) -> tuple[Any, Any]:
    """Return a trainer's batch of step `number`, counted from 0 over all epochs of `steps` steps."""
    epoch, position = divmod(number, steps)
    order = np.random.default_rng((arguments.seed, epoch)).permutation(len(mine))
    size = arguments.batch_size * trainer.count
    chosen = order[position * size :][:size][trainer.index :: trainer.count]
    return tf.constant(mine.x[chosen]), tf.constant(mine.y[chosen])


def train(training: Training, arguments: hyperparameters.Namespace) -> bool:
    """Run the remaining steps, or those until SIGTERM; return whether all steps were made."""
    mine = records.load(hyperparameters.TRAIN_CHANNEL)
    steps = arguments.steps_per_epoch or len(mine) // (arguments.batch_size * training.trainers)
    last = arguments.epochs * steps
    training.resume()
    if int(training.step) and training.is_first:
        print(f"resumed at step {int(training.step)}", flush=True)
    figures = []
    for number in range(int(training.step), last):

        def of_trainer(index: int, number: int = number) -> tuple[Any, Any]:
            return batch(mine, arguments, steps, number, images.Trainer(index, training.trainers))

        figures.append(training.learn(of_trainer))
        training.step.assign_add(1)
        # Asked once: a signal that arrives after this line takes effect in the next step.
        done, stops = number + 1, training.is_interrupted()
        is_due = done % arguments.checkpoint_steps == 0
        if is_due or done == last or stops:
            training.save()
        if training.is_first and (is_due or done == last or stops or done % arguments.log_steps == 0):
            loss, accuracy = model.mean(figures)
            figures = []
            print(f"step {done} of {last}: loss={loss:.4f} accuracy={accuracy:.4f}", flush=True)
        if stops and done < last:
            training.print_stop()
            return False
    return True


def parse(description: str | None) -> hyperparameters.Namespace:
    """Parse the hyperparameters."""
    parser = hyperparameters.parser(description)
    add = parser.add_argument
    add("--checkpoint-steps", type=hyperparameters.positive, default=50, help="steps between two checkpoints")
    add("--log-steps", type=hyperparameters.positive, help="steps between two lines; default: those of checkpoints")
    arguments = parser.parse_args()
    arguments.log_steps = arguments.log_steps or arguments.checkpoint_steps
    return arguments


def run(layout: type[Training], arguments: hyperparameters.Namespace, strategy: Any = None) -> int:
    """Train; after all steps save the model and evaluate the saved model. Return the exit code."""
    tf.keras.utils.set_random_seed(arguments.seed)
    held_out = records.held_out()
    training = layout(arguments, held_out.shape, strategy or tf.distribute.get_strategy())
    if not train(training, arguments):
        return TERMINATED
    if training.is_first:
        folder = hyperparameters.model_folder()
        model.save(training.network, folder)
        print(f"finished at step {int(training.step)}: accuracy={model.score(folder, held_out):.4f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(run(Training, parse(__doc__)))
