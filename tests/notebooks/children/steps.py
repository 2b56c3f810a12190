"""Looks into the notebooks' programs from beside them, and writes what it found as JSON; run in notebooks/code."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))

import hyperparameters
import images
import numpy as np
import tensorflow as tf
import train_estimator_mwms as estimator_program
import train_mirrored_loop as loop_program

WORKERS = 2
DEVICES = 2
STEPS = 3


def labels_of_each_worker():
    """What of twelve images each worker's input_fn brings in an epoch, told by their labels."""
    mine = images.Images(np.zeros((12, 28, 28), np.uint8), np.arange(12, dtype=np.uint8))
    arguments = hyperparameters.parser("").parse_args(["--batch-size", "6"])
    input_fn = estimator_program.input_function(mine, arguments, sharded=False)
    contexts = [tf.distribute.InputContext(WORKERS, index, WORKERS) for index in range(WORKERS)]
    return [sorted(next(iter(input_fn(each)))[1].numpy().tolist()) for each in contexts]


def losses_of(devices, batch_size, learning_rate):
    """The losses of some steps from the same weights on the same global batches."""
    sys.argv[1:] = ["--batch-size", str(batch_size), "--learning-rate", str(learning_rate)]
    tf.keras.utils.set_random_seed(1)
    training = loop_program.Training(tf.distribute.MirroredStrategy(devices), loop_program.parse())
    size = STEPS * training.global_batch
    generator = np.random.default_rng(1)
    mine = images.Images(
        generator.integers(0, 256, (size, 28, 28)).astype(np.uint8), generator.integers(0, 10, size).astype(np.uint8)
    )
    return [float(training.step(batch)) for batch in loop_program.distributed(training, mine)]


devices = loop_program.devices(DEVICES)
print(
    json.dumps(
        {
            "labels": labels_of_each_worker(),
            "two devices": losses_of(devices, 16, 0.001),
            "one device": losses_of(devices[:1], 32, 0.002),
        }
    ),
    flush=True,
)
# What a TensorFlow without it would have the program do.
vars(tf).pop("estimator", None)
estimator_program.main()
