"""TF2's coordinator counts steps on parameter servers."""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf

steps = int(sys.argv[-1])
strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    counter = tf.Variable(0, dtype=tf.int64)


@tf.function
def count():
    counter.assign_add(1)


for number in range(steps):
    coordinator.schedule(count)
    coordinator.join()
    if number == 5:
        print("training", flush=True)
print(int(counter.numpy()), "steps counted", flush=True)
