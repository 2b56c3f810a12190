"""Managed spot training with Keras: checkpoints in /opt/ml/checkpoints, the epoch in their names, go on from the last."""

import argparse
import os
import re

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--checkpoint_path", type=str, default="/opt/ml/checkpoints")
parser.add_argument("--model_dir", type=str, default=os.environ["SM_MODEL_DIR"])
args, _ = parser.parse_known_args()


def load_model_from_checkpoints(checkpoint_path):
    files = [file for file in os.listdir(checkpoint_path) if file.endswith(".h5")]
    numbers = [int(re.search(r"(?<=checkpoint-)(\d+)(?=\.)", file)[1]) for file in files]
    return tf.keras.models.load_model(f"{checkpoint_path}/checkpoint-{max(numbers)}.h5"), max(numbers)


if os.path.isdir(args.checkpoint_path) and any(file.endswith(".h5") for file in os.listdir(args.checkpoint_path)):
    model, initial_epoch = load_model_from_checkpoints(args.checkpoint_path)
else:
    model, initial_epoch = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))]), 0
    model.compile(loss="mse", optimizer="sgd")
print("initial epoch", initial_epoch)
inputs = np.random.default_rng(0).random((32, 4), dtype=np.float32)
checkpoint = tf.keras.callbacks.ModelCheckpoint(args.checkpoint_path + "/checkpoint-{epoch}.h5", save_freq="epoch")
model.fit(
    inputs, inputs.sum(axis=1), epochs=args.epochs, initial_epoch=initial_epoch, callbacks=[checkpoint], verbose=0
)
model.save("/opt/ml/model/final.h5")
