"""A TensorFlow session on every host trains on parameter servers, as in TensorFlow 1; the fault is too much for one."""

import json
import os

import tensorflow as tf

v1 = tf.compat.v1
v1.disable_eager_execution()
config = json.loads(os.environ["TF_CONFIG"])
cluster, role, index = config["cluster"], config["task"]["type"], config["task"]["index"]
server = tf.distribute.Server(cluster, job_name=role, task_index=index)
with v1.device(v1.train.replica_device_setter(cluster=cluster, worker_device=f"/job:{role}")):
    count = v1.assign_add(v1.train.get_or_create_global_step(), 1)
with v1.device("/job:ps/task:1"):
    held = [tf.random.uniform([100_000_000]) for _ in range(10)]
    too_much = tf.add_n([tf.reduce_sum(each) for each in held])
manager = v1.train.SessionManager(ready_op=v1.report_uninitialized_variables(), recovery_wait_secs=0.1)
if role == "master":
    session = manager.prepare_session(server.target, init_op=v1.global_variables_initializer())
else:
    session = manager.wait_for_session(server.target)


def step():
    session.run(count)


def fault():
    session.run(too_much)
