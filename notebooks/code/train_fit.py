"""Train the network on several workers with ``model.fit``, which Keras 2 supports and Keras 3 does not.

All hosts run this program as the workers in ``TF_CONFIG``. With Keras 3 the job fails, and its failure reason says
what to do: use Keras 2 of the package ``tf-keras``, or a custom training loop such as train_mwms.py.
"""

from __future__ import annotations

import hyperparameters
import images
import model
import tensorflow as tf


def main() -> None:
    """Train the network with ``fit``, and print the accuracy of the last epoch."""
    arguments = hyperparameters.parser(__doc__).parse_args()
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
    fitted = network.fit(batches, epochs=arguments.epochs, steps_per_epoch=steps, verbose=2)
    print(
        f"summary: layout=fit trainers={strategy.num_replicas_in_sync} accuracy={fitted.history['accuracy'][-1]:.4f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
