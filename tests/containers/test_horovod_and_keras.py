"""Horovod with both Kerases: our stand-in where it meets Keras, on two ranks in one container."""

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
#: Applied by hand; Horovod's own for Keras 2 asks the other ranks in `minimize` alone.
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


def ranks(plain_job, image, program, options=()):
    plain_job.prepare(program, sagemaker_mpi_enabled=True, sagemaker_mpi_num_of_processes_per_host=2)
    done = plain_job.run(image, "train", options=options)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize(
    ("version", "variables", "keras"),
    [("2.15.1", (), "keras"), ("2.21.0", (), "keras"), ("2.21.0", ("TF_USE_LEGACY_KERAS=1",), "tf_keras")],
    ids=["TensorFlow 2.15", "Keras 3", "legacy Keras"],
)
def test_ranks_train_one_model_with(version, variables, keras, built, plain_job):
    options = [word for each in variables for word in ("--env", each)]
    said = ranks(plain_job, built(version), PROGRAM, options)
    for rank in range(2):
        for name in ("weights", "gradients", "loop", "fit", "metrics"):
            assert f"rank {rank} {name} same" in said, said
        assert f"rank {rank} loaded {keras}" in said


def test_an_optimizer_of_keras_3_sums_what_it_is_given(built, plain_job):
    said = ranks(plain_job, built("2.21.0"), BY_HAND)
    assert said.count("applied [-0.5, 0.5]") == 2
    assert "takes op and compression, not backward_passes_per_step; remove that" in said
