"""Real failures of real programs, and the advice in the failure file."""

import json
import os
import socket
import subprocess
import sys

import pytest
from fakes.host_folders import write_job
from processes.launchers import ENTRYPOINTS, host
from references import environment


def first_lines(launcher, timeout=600):
    launcher.wait(timeout)
    lines = launcher.failure.splitlines()
    assert len(lines) > 1, launcher.output
    return lines[0], lines[1]


def test_a_signal_that_killed_pip_is_named(tmp_path, launch):
    (tmp_path / "first").mkdir()
    kills = "import os\nif b\"run_module('pip'\" in open('/proc/self/cmdline', 'rb').read(): os.kill(os.getpid(), 9)"
    (tmp_path / "first" / "sitecustomize.py").write_text(kills)
    code = {"train.py": "", "requirements.txt": "extra"}
    base = write_job(tmp_path / "job", 1, code, sagemaker_program="train.py")["algo-1"]
    launcher = launch(base, also_on_path=str(tmp_path / "first"))
    assert first_lines(launcher)[0] == "algo-1, requirements: killed by SIGKILL"
    assert launcher.wait() == 137


def test_a_port_that_is_taken_is_looked_for_elsewhere(tmp_path, launch):
    with socket.create_server(("127.0.0.1", 0)) as held:
        script = f"import socket; socket.create_server({held.getsockname()!r})"
        assert first_lines(launch(host(tmp_path, script)))[1].startswith(
            "A port of this task is held by another program: "
        )


# --- with TensorFlow

TENSORFLOW = """
import json, os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf
"""
SERVERS = {"sagemaker_parameter_server_enabled": True}
MIRRORED = {"sagemaker_multi_worker_mirrored_strategy_enabled": True}
MODEL = """
with strategy.scope():
    model = tf.keras.Sequential([{}tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensor_slices((tf.zeros([64, 4]), tf.zeros([64, 1])))
"""
FIT_STEPS = "model.fit(data.repeat().batch(8), steps_per_epoch=8, verbose=0)"
RESOLVER = "tf.distribute.cluster_resolver.TFConfigClusterResolver()"
#: Script, hosts, distribution, whether Keras is Keras 3, and the hint.
WITH_TENSORFLOW = {
    "memory": ("tf.zeros([1 << 22, 1 << 22])", 1, {}, False, "The host ran out of memory: use a smaller batch, or a larger host"),
    "strategy": (
        f"tf.distribute.ParameterServerStrategy({RESOLVER})", 2, SERVERS, False, "TF2's ParameterServerStrategy takes a chief",
    ),
    # What users of today's TensorFlow meet first.
    "keras 3, workers": (
        f"strategy = tf.distribute.MultiWorkerMirroredStrategy()\n{MODEL.format('')}model.fit(data.batch(8), verbose=0)",
        2, MIRRORED, True, "Keras 3 cannot fit on several workers: add tf-keras==2.21.* to requirements.txt",
    ),
    "keras 3, parameter servers": (
        f"strategy = tf.distribute.ParameterServerStrategy({RESOLVER})\n{MODEL.format('tf.keras.Input((4,)), ')}{FIT_STEPS}",
        1, {**SERVERS, "sagemaker_parameter_server_coordinator": True}, True,
        "Keras 3 cannot fit with parameter servers: add tf-keras==2.21.* to requirements.txt",
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", WITH_TENSORFLOW.values(), ids=WITH_TENSORFLOW)
def test_the_hint_of_tensorflows_error_is_in_each_hosts_report(tmp_path, launch, case):
    script, hosts, distribution, is_keras_3, advice = case
    if is_keras_3 and sys.version_info < (3, 10):
        pytest.skip("TensorFlow 2.21 is for Python 3.10 and later")
    python = str(environment("tensorflow-cpu==2.21.0") / "python") if is_keras_3 else sys.executable
    code = {"train.py": TENSORFLOW + script}
    job = write_job(tmp_path / "job", hosts, code, sagemaker_program="train.py", **distribution)
    launchers = [launch(base, python=python) for base in job.values()]
    assert all(first_lines(launcher, 300)[1].startswith(advice) for launcher in launchers)


@pytest.mark.long
@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_port_of_a_task_that_is_taken_is_named(tmp_path, launch):
    code = {"train.py": f"{TENSORFLOW}tf.distribute.MultiWorkerMirroredStrategy()"}
    job = write_job(tmp_path / "job", 2, code, sagemaker_program="train.py", **MIRRORED)
    cluster = json.loads((job["algo-1"] / "input" / "config" / "scriptmode.json").read_text())
    port = cluster["hosts"]["algo-1"]["ports"]["mirrored"]
    with socket.create_server(("", port)):
        launchers = [launch(base) for base in job.values()]
        told = {first_lines(launcher, 200)[1] for launcher in launchers}
    assert told == {f"A port of this task is held by another program: worker 0 listens at 127.0.0.1:{port}"}


@pytest.mark.tf
@pytest.mark.slow
def test_the_port_of_a_server_that_is_taken_is_named_at_once():
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        config = {"cluster": {"ps": [f"127.0.0.1:{port}"]}, "task": {"type": "ps", "index": 0}}
        env = {**os.environ, "PYTHONPATH": str(ENTRYPOINTS), "TF_CONFIG": json.dumps(config), "CURRENT_HOST": "algo-1"}
        command = [sys.executable, "-m", "scriptmode_runtime.tensorflow.server"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1
    assert f"algo-1: port {port} of ps 0" in done.stderr
