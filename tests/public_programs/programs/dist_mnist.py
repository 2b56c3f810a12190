"""Between-graph replication by TensorFlow 1's API: a server of each task, TF_CONFIG as flags, a monitored session."""

import json
import os

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
flags = tf.app.flags
flags.DEFINE_string("model_dir", None, "Directory that every task can write to.")
flags.DEFINE_integer("train_steps", 200, "Number of (global) training steps to perform.")
flags.DEFINE_float("learning_rate", 0.01, "Learning rate.")
FLAGS = flags.FLAGS

TF_CONFIG = json.loads(os.environ.get("TF_CONFIG", "{}"))


def main(_):
    task = TF_CONFIG.get("task", {})
    job_name, task_index = task.get("type"), task.get("index")
    cluster = tf.train.ClusterSpec(TF_CONFIG["cluster"])
    server = tf.train.Server(cluster, job_name=job_name, task_index=task_index)
    if job_name == "ps":
        server.join()
    is_chief = job_name in ("chief", "master")
    setter = tf.train.replica_device_setter(worker_device=f"/job:{job_name}/task:{task_index}", cluster=cluster)
    with tf.device(setter):
        global_step = tf.train.get_or_create_global_step()
        inputs = tf.placeholder(tf.float32, [None, 4])
        targets = tf.placeholder(tf.float32, [None, 1])
        weights = tf.get_variable("weights", [4, 1])
        loss = tf.reduce_mean(tf.square(tf.matmul(inputs, weights) - targets))
        train_step = tf.train.GradientDescentOptimizer(FLAGS.learning_rate).minimize(loss, global_step=global_step)
    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.train_steps)]
    config = tf.ConfigProto(allow_soft_placement=True, device_filters=["/job:ps", f"/job:{job_name}/task:{task_index}"])
    random = np.random.default_rng(task_index)
    local_step = 0
    with tf.train.MonitoredTrainingSession(
        master=server.target, is_chief=is_chief, hooks=hooks, config=config,
        checkpoint_dir=FLAGS.model_dir if is_chief else None,
    ) as session:  # fmt: skip
        while not session.should_stop():
            batch = random.random((16, 4), dtype=np.float32)
            session.run(train_step, feed_dict={inputs: batch, targets: batch.sum(axis=1, keepdims=True)})
            local_step += 1
    print(f"{job_name} {task_index}: training step {local_step} done")


if __name__ == "__main__":
    tf.app.run()
