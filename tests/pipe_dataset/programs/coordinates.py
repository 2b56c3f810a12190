"""The chief of a parameter-server cluster: its worker sums the numbers of a channel, epoch after epoch."""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf

from scriptmode_runtime.tensorflow import PipeModeDataset

strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    total = tf.Variable(0.0)
    records = tf.Variable(0, dtype=tf.int64)


def rows():
    return PipeModeDataset("train", "TextLine", batch_size=4, timeout=30).map(tf.strings.to_number)


@tf.function
def step(iterator):
    batch = next(iterator)
    total.assign_add(tf.reduce_sum(batch))
    records.assign_add(tf.size(batch, tf.int64))


per_worker = coordinator.create_per_worker_dataset(rows if sys.argv[1] == "function" else rows())
for _ in range(2):
    iterator = iter(per_worker)
    for _ in range(3):
        coordinator.schedule(step, args=(iterator,))
    coordinator.join()
    print(int(records.numpy()), "records, together", int(total.numpy()), flush=True)
