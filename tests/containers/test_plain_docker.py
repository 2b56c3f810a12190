"""`docker run IMAGE train` over a hand-made /opt/ml, with nothing of the SDK."""

import os

import pytest
from containers.conftest import users_of_images
from fakes import wheels

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(2400)]

PROGRAM = """
import argparse, os

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
with open(os.path.join(os.environ["SM_MODEL_DIR"], "weights"), "w") as file:
    file.write(str(parser.parse_args().epochs))
print("trained as", os.getuid())
"""
ALLREDUCE = """
import os
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
total = hvd.allreduce(tf.constant([1.0 + hvd.rank()]), op=hvd.Sum)
variable = tf.Variable([float(hvd.rank() + 7)])
hvd.broadcast_variables([variable], root_rank=0)
with hvd.DistributedGradientTape(tf.GradientTape()) as tape:
    loss = variable * (hvd.rank() + 1.0)
gradient = tape.gradient(loss, [variable])[0]
print(f"rank {hvd.rank()} of {hvd.size()}: {total.numpy()[0]} {variable.numpy()[0]} {gradient.numpy()[0]}")
"""
FIT = """
import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf

hvd.init()
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01)), loss="mse")
callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0)]
features = np.random.default_rng(hvd.rank()).normal(size=(64, 2)).astype("float32")
model.fit(features, features.sum(axis=1), epochs=2, verbose=0, callbacks=callbacks)
weights = hvd.allgather(tf.reshape(tf.concat([tf.reshape(each, [-1]) for each in model.weights], 0), [1, -1])).numpy()
print("same weights on", hvd.size(), "ranks:", bool((weights == weights[0]).all()))
"""
BOARD = """
import os
import tensorflow as tf

logs = os.environ["SM_OUTPUT_DATA_DIR"]
with tf.summary.create_file_writer(os.path.join(logs, "summary")).as_default():
    tf.summary.scalar("loss", 0.5, step=1)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(loss="mse")
features = tf.ones((8, 2))
callback = tf.keras.callbacks.TensorBoard(os.path.join(logs, "fit"))
model.fit(features, features[:, :1], epochs=1, verbose=0, callbacks=[callback])
"""
#: What packages for TensorFlow require by name, such as tensorflow-hub.
OF_TENSORFLOW = ("tensorflow>=2.15", "tf-keras>=2.14.1")


@users_of_images
def test_a_job_trains_as(user, image, plain_job):
    plain_job.prepare(PROGRAM, epochs=3)
    done = plain_job.run(image, *(["train"] if user else []), user=user)  # what the image runs by itself, too
    assert done.returncode == 0, done.stdout
    weights = plain_job.folder / "model" / "weights"
    assert weights.read_text() == "3"
    assert weights.stat().st_uid == (int(user.partition(":")[0]) if user else os.getuid())


@users_of_images
def test_requirements_are_installed_for(user, image, plain_job):
    plain_job.prepare("import extra, yaml; print(f'extra {extra.NUMBER} {yaml.__name__}')")
    (plain_job.folder / "code" / wheels.NAME).write_bytes(wheels.extra())
    (plain_job.folder / "code" / "requirements.txt").write_text(f"./{wheels.NAME}\n")
    plain_job.folder.chmod(0o777)
    done = plain_job.run(image, "train", user=user)
    assert "extra 7 yaml" in done.stdout


def test_the_images_tensorflow_is_what_requirements_ask_for(image, plain_job):
    # Without a network: nothing can be downloaded.
    plain_job.prepare("import extra, tensorflow as tf; print('extra', extra.NUMBER, tf.__version__)")
    (plain_job.folder / "code" / wheels.NAME).write_bytes(wheels.extra(requires=OF_TENSORFLOW))
    (plain_job.folder / "code" / "requirements.txt").write_text(f"tensorflow\ntf-keras\n./{wheels.NAME}\n")
    done = plain_job.run(image, "train")
    assert done.returncode == 0, done.stdout
    assert f"extra 7 {image.partition(':')[2].partition('-')[0]}" in done.stdout


def test_a_job_writes_for_tensorboard(image, plain_job):
    plain_job.prepare(BOARD)
    done = plain_job.run(image, "train")
    assert done.returncode == 0, done.stdout
    written = plain_job.folder / "output" / "data"
    assert list((written / "summary").glob("events.out.tfevents.*"))
    assert list((written / "fit" / "train").glob("events.out.tfevents.*"))


@users_of_images
def test_a_failure_is_the_exit_code_and_the_failure_file_for(user, image, plain_job):
    plain_job.prepare("raise SystemExit(7)")
    assert plain_job.run(image, "train", user=user).returncode == 7
    assert "exit code 7" in (plain_job.folder / "output" / "failure").read_text()


@users_of_images
def test_two_ranks_agree_and_fit_one_model_by_horovods_own_keras_as(user, image, plain_job):
    plain_job.prepare(ALLREDUCE + FIT, sagemaker_mpi_enabled=True, sagemaker_mpi_num_of_processes_per_host=2)
    # Ranks that poll without yielding take the cores from each other and from other tests.
    variables = ("TF_USE_LEGACY_KERAS=1", "OMPI_MCA_mpi_yield_when_idle=1")
    done = plain_job.run(image, "train", user=user, options=[f"--env={each}" for each in variables])
    assert done.returncode == 0, done.stdout
    for rank in range(2):
        assert f"rank {rank} of 2: 3.0 7.0 1.5" in done.stdout
    assert done.stdout.count("same weights on 2 ranks: True") == 2
