"""Horovod with Keras's callbacks, flags of the command line, and files in the current directory."""

import argparse
import glob

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
parser.add_argument("--fp16-allreduce", action="store_true", default=False)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--num-iters", type=int, default=10)
parser.add_argument("--no-cuda", action="store_true", default=False)
args = parser.parse_args()

hvd.init()
gpus = [] if args.no_cuda else tf.config.experimental.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")

random = np.random.default_rng(hvd.rank())
inputs = random.random((64, 4), dtype=np.float32)
dataset = tf.data.Dataset.from_tensor_slices((inputs, inputs.sum(axis=1))).repeat().batch(args.batch_size)

model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
rate = 0.01 * hvd.size()
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(rate), compression=compression)
model.compile(loss="mse", optimizer=optimizer)
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(initial_lr=rate, warmup_epochs=1, verbose=1),
]
if hvd.rank() == 0:
    callbacks.append(tf.keras.callbacks.ModelCheckpoint("./checkpoint-{epoch}.weights.h5", save_weights_only=True))
model.fit(
    dataset, steps_per_epoch=args.num_iters // hvd.size(), callbacks=callbacks, epochs=1, verbose=2 * (hvd.rank() == 0)
)
if hvd.rank() == 0:
    print("ranks", hvd.size(), "checkpoints", sorted(glob.glob("checkpoint-*.h5")))
