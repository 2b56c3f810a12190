"""A coordinator, workers and parameter servers, each in the role that TF_CONFIG names; variables are partitioned."""

import os

import numpy as np
import tensorflow as tf

cluster_resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if cluster_resolver.task_type in ("worker", "ps"):
    # Fail, instead of waiting for ever, when the coordinator is gone.
    os.environ["GRPC_FAIL_FAST"] = "use_caller"
    server = tf.distribute.Server(
        cluster_resolver.cluster_spec(),
        job_name=cluster_resolver.task_type,
        task_index=cluster_resolver.task_id,
        protocol=cluster_resolver.rpc_layer or "grpc",
        start=True,
    )
    server.join()

cluster = cluster_resolver.cluster_spec()
variable_partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(
    min_shard_bytes=256, max_shards=cluster.num_tasks("ps")
)
strategy = tf.distribute.experimental.ParameterServerStrategy(
    cluster_resolver, variable_partitioner=variable_partitioner
)
coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(strategy)


def dataset_fn(_):
    inputs = np.random.default_rng(0).random((64, 4), dtype=np.float32)
    return tf.data.Dataset.from_tensor_slices((inputs, inputs.sum(axis=1, keepdims=True))).repeat().batch(8)


with strategy.scope():
    weights = tf.Variable(tf.zeros([4, 1]))
    optimizer = tf.keras.optimizers.legacy.SGD(0.05)


@tf.function
def per_worker_dataset_fn():
    return strategy.distribute_datasets_from_function(dataset_fn)


@tf.function
def train_step(iterator):
    def step_fn(batch):
        inputs, targets = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(inputs, weights) - targets))
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
        return loss

    return strategy.run(step_fn, args=(next(iterator),))


iterator = iter(coordinator.create_per_worker_dataset(per_worker_dataset_fn))
for _ in range(20):
    last = coordinator.schedule(train_step, args=(iterator,))
coordinator.join()
print("workers", cluster.num_tasks("worker"), "ps", cluster.num_tasks("ps"), f"loss={float(last.fetch()):.4f}")
tf.train.Checkpoint(weights=weights).write(os.path.join(os.environ["SM_MODEL_DIR"], "weights"))
