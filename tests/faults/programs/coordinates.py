"""TensorFlow's coordinator trains; the fault makes the server that ``--starved`` names hold more than it can."""

import sys

import tensorflow as tf

strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    steps = tf.Variable(0, dtype=tf.int64)


@tf.function
def count():
    steps.assign_add(1)


def step():
    coordinator.schedule(count)
    coordinator.join()


def fault():
    role, index = sys.argv[sys.argv.index("--starved") + 1].split()
    with tf.device(f"/job:{role}/task:{index}"):
        held = [tf.fill([10_000_000], 1.0 * number) for number in range(100)]
    print(len(held), "are held")
