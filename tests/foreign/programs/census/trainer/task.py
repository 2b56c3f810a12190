"""A trainer package of Cloud ML Engine: relative imports, --job-dir, choices, unknown arguments are left alone."""

import argparse
import os

import numpy as np
import tensorflow as tf

from . import model


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--job-dir", type=str, required=True, help="location for checkpoints and exported models")
    parser.add_argument("--num-epochs", type=int, default=20)
    parser.add_argument("--batch-size", default=128, type=int)
    parser.add_argument("--learning-rate", default=0.01, type=float)
    parser.add_argument("--hidden-units", nargs="*", default=[64], type=int)
    parser.add_argument("--verbosity", choices=["DEBUG", "ERROR", "FATAL", "INFO", "WARN"], default="INFO")
    return parser.parse_known_args()[0]


def train_and_evaluate(args):
    features = np.random.default_rng(0).random((64, 4), dtype=np.float32)
    labels = (features.sum(axis=1) > 2).astype(np.float32)
    keras_model = model.create_keras_model(features.shape[1], args.learning_rate)
    training = model.input_fn(features, labels, shuffle=True, num_epochs=args.num_epochs, batch_size=args.batch_size)
    tensorboard = tf.keras.callbacks.TensorBoard(os.path.join(args.job_dir, "keras_tensorboard"), histogram_freq=1)
    keras_model.fit(
        training, steps_per_epoch=len(features) // args.batch_size, epochs=args.num_epochs, callbacks=[tensorboard]
    )
    export_path = os.path.join(args.job_dir, "keras_export")
    tf.saved_model.save(keras_model, export_path)
    print("hidden units", args.hidden_units)
    print(f"Model exported to: {export_path}")


if __name__ == "__main__":
    arguments = get_args()
    tf.compat.v1.logging.set_verbosity(arguments.verbosity)
    train_and_evaluate(arguments)
