"""Horovod with Keras 2 and Keras 3: the runtime's replacement for its Keras part, on two ranks in one container."""

import pytest

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(2400)]

PROGRAM = """
import os
import tempfile

import numpy as np
import tensorflow as tf

import scriptmode_runtime.tensorflow.horovod as hvd

hvd.init()


def same(name, values):
    gathered = hvd.allgather(tf.reshape(tf.cast(values, tf.float64), [1, -1])).numpy()
    # One write a line: two ranks share the log.
    print(f"rank {hvd.rank()} {name} {'same' if np.allclose(gathered, gathered[0]) else gathered}\\n", end="")


def flat(variables):
    return tf.concat([tf.reshape(tf.convert_to_tensor(each), [-1]) for each in variables], 0)


def network(seed):
    tf.keras.utils.set_random_seed(seed)
    return tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])


model = network(hvd.rank())
hvd.broadcast_variables(model.variables, root_rank=0)
same("weights", flat(model.weights))


@tf.function
def gradients(features):
    with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
        loss = tf.reduce_mean(model(features))
    return tape.gradient(loss, {"all": model.trainable_variables})["all"]


same("gradients", flat(gradients(tf.ones([4, 2]) * (hvd.rank() + 1))))
tf.keras.optimizers.SGD(0.1).apply_gradients(zip(gradients(tf.ones([4, 2]) * hvd.rank()), model.trainable_variables))
same("loop", flat(model.weights))

model = network(100 + hvd.rank())
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.Adam(0.01)), loss="mse", metrics=["mae"])
features = np.random.default_rng(hvd.rank()).normal(size=(64, 2)).astype("float32")
history = model.fit(
    features, features.sum(axis=1, keepdims=True), epochs=3, verbose=0,
    callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()],
).history
same("fit", flat(model.weights))
same("metrics", tf.constant([history["loss"], history["mae"]]))
path = os.path.join(tempfile.mkdtemp(), "model.keras")
model.save(path)
loaded = tf.keras.models.load_model(path)
print(f"rank {hvd.rank()} loaded {type(loaded.optimizer).__module__.partition('.')[0]}\\n", end="")
"""
#: Gradients applied without `fit`; Horovod's own optimizer for Keras 2 asks the other ranks in `minimize` only.
BY_HAND = """
import numpy as np
import tensorflow as tf

import scriptmode_runtime.tensorflow.horovod as hvd

hvd.init()
variable = tf.keras.Variable([1.0, 2.0])
unused = tf.keras.Variable([1.0])
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.5), op=hvd.Sum)
optimizer.apply_gradients([(tf.constant([1.0, 1.0]) * (hvd.rank() + 1), variable), (None, unused)])
print(f"rank {hvd.rank()} applied {variable.numpy().tolist()}\\n", end="")
try:
    hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.5), backward_passes_per_step=2)
except TypeError as error:
    print(f"rank {hvd.rank()} {error}\\n", end="")
"""


@pytest.mark.parametrize(
    ("version", "variables", "program", "expected"),
    [
        pytest.param("2.15.1", (), PROGRAM, ["loaded keras"], id="TensorFlow 2.15"),
        pytest.param("2.21.0", (), PROGRAM + BY_HAND, ["loaded keras", "applied [-0.5, 0.5]"], id="Keras 3"),
        pytest.param("2.21.0", ("TF_USE_LEGACY_KERAS=1",), PROGRAM, ["loaded tf_keras"], id="legacy Keras"),
    ],
)
def test_ranks_train_one_model_with(version, variables, program, expected, built, plain_job):
    options = [word for each in variables for word in ("--env", each)]
    plain_job.prepare(program, sagemaker_mpi_enabled=True, sagemaker_mpi_num_of_processes_per_host=2)
    done = plain_job.run(built(version), "train", options=options)
    assert done.returncode == 0, done.stdout
    for rank in range(2):
        for name in ("weights", "gradients", "loop", "fit", "metrics"):
            assert f"rank {rank} {name} same" in done.stdout
        for text in expected:
            assert f"rank {rank} {text}" in done.stdout
    if BY_HAND in program:
        assert "takes op and compression, not backward_passes_per_step; remove that" in done.stdout
