"""Real failures of real programs, and the advice in the failure file."""

import json
import socket
import sys

import pytest
from fakes.host_folders import write_host, write_job
from references import environment

LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))\n"
PARSER = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--data', required=True)\nparser.parse_args()\n"

FAILURES = {
    "out of memory": (f"{LIMITED}bytearray(1 << 40)", "The host ran out of memory: "),
    "no memory for a child": (f"{LIMITED}import mmap; mmap.mmap(-1, 1 << 40)", "The host ran out of memory: "),
    "disk full": ("with open('/dev/full', 'w') as file: file.write('x')", "The disk is full: "),
    "missing module": ("import no_such_module.below", "no_such_module is not installed in "),
    "module shadowed": ("import shadowed_random", "A file of the source has the name of a module"),
    "crash": ("import ctypes; ctypes.string_at(0)", "Usually a library crashed: "),
}


def first_lines(launcher, timeout=60):
    launcher.wait(timeout)
    lines = launcher.failure.splitlines()
    assert len(lines) > 1, launcher.output
    return lines[0], lines[1]


@pytest.mark.parametrize(("script", "advice"), FAILURES.values(), ids=FAILURES.keys())
def test_the_second_line_of_a_failure_file_is_the_next_step(tmp_path, launch, script, advice):
    code = {"train.py": script, "shadowed_random.py": "import shadowed_random; shadowed_random.x"}
    launcher = launch(write_host(tmp_path / "algo-1", code=code, sagemaker_program="train.py"))
    first, second = first_lines(launcher)
    assert first.startswith("algo-1, script: ")
    assert second.startswith(advice)


def test_a_port_that_is_taken_is_looked_for_elsewhere(tmp_path, launch):
    with socket.create_server(("127.0.0.1", 0)) as held:
        script = f"import socket; socket.create_server({held.getsockname()!r})"
        launcher = launch(write_host(tmp_path / "algo-1", code={"train.py": script}, sagemaker_program="train.py"))
        assert first_lines(launcher)[1].startswith("A port of this task is held by another program: ")


@pytest.mark.parametrize(
    ("hyperparameters", "advice"),
    [
        ({"data": "x", "lr": 0.1}, "Each hyperparameter is given to the script as --name value"),
        ({"data": "x", "model_dir": "s3://b/model"}, "TensorFlow jobs are given --model_dir"),
        ({}, "What the script's parser requires is given as a hyperparameter"),
    ],
    ids=["one too many", "model_dir", "one missing"],
)
def test_arguments_that_a_parser_does_not_take_are_hyperparameters(tmp_path, launch, hyperparameters, advice):
    base = write_host(tmp_path / "algo-1", code={"train.py": PARSER}, sagemaker_program="train.py", **hyperparameters)
    first, second = first_lines(launch(base))
    assert first == "algo-1, script: exit code 2"
    assert second.startswith(advice)


@pytest.mark.parametrize(
    ("script", "code", "advice"),
    [
        ("no-such-tool --fast", 127, "no-such-tool is not installed on this host"),
        ("./train.txt", 126, "./train.txt is not executable"),
        ("exit 127", 127, "A command was not found"),
        ("exit 126", 126, "A command is not executable"),
        ("python -c 'import os; os.kill(os.getpid(), 9)'", 137, "If it was not killed on purpose, memory ran out"),
    ],
)
def test_a_shell_scripts_exit_code_has_a_hint(tmp_path, launch, script, code, advice):
    files = {"run.sh": f"#!/bin/sh\n{script}\n", "train.txt": "no program"}
    launcher = launch(write_host(tmp_path / "algo-1", code=files, sagemaker_program="run.sh"))
    first, second = first_lines(launcher)
    assert first == f"algo-1, script: exit code {code}"
    assert second.startswith(advice)


# --- with TensorFlow

STRATEGY = """
import json, os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf
"""


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_tensor_that_does_not_fit_is_too_large_a_batch(tmp_path, launch):
    code = {"train.py": f"{STRATEGY}tf.zeros([1 << 22, 1 << 22])"}
    launcher = launch(write_host(tmp_path / "algo-1", code=code, sagemaker_program="train.py"))
    assert first_lines(launcher, 200)[1] == "The host ran out of memory: use a smaller batch, or a larger host"


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_hint_for_tensorflow_2s_strategy_names_the_coordinator(tmp_path, launch):
    code = {
        "train.py": f"{STRATEGY}resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()\n"
        "tf.distribute.ParameterServerStrategy(resolver)"
    }
    hyperparameters = {"sagemaker_program": "train.py", "sagemaker_parameter_server_enabled": True}
    launchers = [launch(base) for base in write_job(tmp_path / "job", 2, code, **hyperparameters).values()]
    for launcher in launchers:
        assert first_lines(launcher, 200)[1].startswith("TF2's ParameterServerStrategy takes a chief")


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_port_of_a_task_that_is_taken_is_named(tmp_path, launch):
    hyperparameters = {"sagemaker_program": "train.py", "sagemaker_multi_worker_mirrored_strategy_enabled": True}
    code = {"train.py": f"{STRATEGY}tf.distribute.MultiWorkerMirroredStrategy()"}
    job = write_job(tmp_path / "job", 2, code, **hyperparameters)
    cluster = json.loads((job["algo-1"] / "input" / "config" / "scriptmode.json").read_text())
    port = cluster["hosts"]["algo-1"]["ports"]["mirrored"]
    with socket.create_server(("", port)):
        launchers = [launch(base) for base in job.values()]
        told = {first_lines(launcher, 200)[1] for launcher in launchers}
    assert told == {
        f"A port of this task is held by another program: worker 0 listens at 127.0.0.1:{port}",
    }


#: What users of today's TensorFlow meet first.
FIT = f"""{STRATEGY}
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(tf.data.Dataset.from_tensor_slices((tf.zeros([64, 4]), tf.zeros([64, 1]))).batch(8), verbose=0)
"""


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.version_info < (3, 10), reason="TensorFlow 2.21 is for Python 3.10 and later")
def test_the_hint_for_keras_3_on_several_workers_names_keras_2(tmp_path, launch):
    python = environment("tensorflow-cpu==2.21.0") / "python"
    hyperparameters = {"sagemaker_program": "train.py", "sagemaker_multi_worker_mirrored_strategy_enabled": True}
    job = write_job(tmp_path / "job", 2, {"train.py": FIT}, **hyperparameters)
    launchers = [launch(base, python=str(python)) for base in job.values()]
    for launcher in launchers:
        assert first_lines(launcher, 300)[1].startswith("Keras 3 cannot fit on several workers: install tf-keras")


#: Read with Keras 2, and refused with Keras 3.
FIT_WITH_SERVERS = f"""{STRATEGY}
strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
batches = tf.data.Dataset.from_tensor_slices((tf.zeros([64, 4]), tf.zeros([64, 1]))).repeat().batch(8)
model.fit(batches, steps_per_epoch=8, verbose=0)
"""


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.version_info < (3, 10), reason="TensorFlow 2.21 is for Python 3.10 and later")
def test_the_hint_for_keras_3_with_parameter_servers_names_keras_2(tmp_path, launch):
    python = environment("tensorflow-cpu==2.21.0") / "python"
    hyperparameters = {
        "sagemaker_program": "train.py",
        "sagemaker_parameter_server_enabled": True,
        "sagemaker_parameter_server_coordinator": True,
    }
    (base,) = write_job(tmp_path / "job", 1, {"train.py": FIT_WITH_SERVERS}, **hyperparameters).values()
    launcher = launch(base, python=str(python))
    assert first_lines(launcher, 300)[1].startswith("Keras 3 cannot fit with parameter servers: install tf-keras")
