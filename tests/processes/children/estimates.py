"""tf.estimator fits one number; what its tasks do, they tell. Arguments: --mirrored, --model_dir, --steps."""

import json
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
folder, steps, mirrored = given["--model_dir"], int(given["--steps"]), given["--mirrored"] == "True"
role = json.loads(os.environ["TF_CONFIG"])["task"]["type"]
if mirrored:
    # Else tf.estimator does not take the strategy.
    tf.compat.v1.disable_eager_execution()


def model_fn(features, labels, mode):
    number = tf.compat.v1.get_variable("number", shape=())
    loss = tf.reduce_mean(tf.square(number - labels))
    step = tf.compat.v1.train.get_global_step()
    train = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def data():
    return tf.data.Dataset.from_tensors(([0.0], [3.0])).repeat()


class Told(tf.estimator.SessionRunHook):
    def begin(self):
        print(role, "evaluates", flush=True)


config = tf.estimator.RunConfig(
    model_dir=folder,
    save_checkpoints_steps=steps,
    experimental_max_worker_delay_secs=0,
    train_distribute=tf.distribute.MultiWorkerMirroredStrategy() if mirrored else None,
)
print(role, config.task_id, "of", sorted(config.cluster_spec.jobs), flush=True)
while role == "worker" and not mirrored and not tf.train.latest_checkpoint(folder):
    # A session that finds the variables uninitialized looks again after 30 s only.
    time.sleep(0.05)
tf.estimator.train_and_evaluate(
    tf.estimator.Estimator(model_fn, config=config),
    tf.estimator.TrainSpec(data, max_steps=steps),
    tf.estimator.EvalSpec(data, steps=1, hooks=[Told()], start_delay_secs=0, throttle_secs=0),
)
print(role, "has trained to", tf.train.latest_checkpoint(folder), flush=True)
