"""Keras on several workers: the cluster from TF_CONFIG, a model in a directory of each worker's own."""

import json
import os

import setup_of_model
import tensorflow as tf

per_worker_batch_size = 16
tf_config = json.loads(os.environ["TF_CONFIG"])
num_workers = len(tf_config["cluster"]["worker"])

strategy = tf.distribute.MultiWorkerMirroredStrategy()
global_batch_size = per_worker_batch_size * num_workers
multi_worker_dataset = setup_of_model.dataset(global_batch_size)
with strategy.scope():
    multi_worker_model = setup_of_model.build_and_compile()
multi_worker_model.fit(multi_worker_dataset, epochs=1, steps_per_epoch=3)

model_path = "/opt/ml/model/keras-model.h5"


def _is_chief(task_type, task_id):
    return (task_type == "worker" and task_id == 0) or task_type is None


def write_filepath(filepath, task_type, task_id):
    """Return the path to write to: every worker writes, one keeps what it wrote."""
    directory = os.path.dirname(filepath)
    if not _is_chief(task_type, task_id):
        directory = os.path.join(directory, f"workertemp_{task_id}")
        tf.io.gfile.makedirs(directory)
    return os.path.join(directory, os.path.basename(filepath))


resolver = strategy.cluster_resolver
task_type, task_id = resolver.task_type, resolver.task_id
write_model_path = write_filepath(model_path, task_type, task_id)
multi_worker_model.save(write_model_path)
if not _is_chief(task_type, task_id):
    tf.io.gfile.rmtree(os.path.dirname(write_model_path))
print("worker", task_id, "of", num_workers, "replicas", strategy.num_replicas_in_sync)
