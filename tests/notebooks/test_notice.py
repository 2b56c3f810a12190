"""The programs that save at the notice: SIGTERM before the end of a run. The next run goes on with the next step."""

import os
import re
import signal
import subprocess
import sys

import pytest
from fakes.processes import until
from notebooks.execution import NOTEBOOKS

from scriptmode import MPI, Estimator, MultiWorkerMirrored, ParameterServer

DATA = NOTEBOOKS / "data" / "fashion_mnist"
EPOCHS, STEPS = 2, 100
#: Facts of the guide about TensorFlow: what its handlers of SIGTERM do where they are not made for.
REFUSALS = """
import functools, http.server, os, pathlib, signal, sys, tempfile, threading
import tensorflow as tf
distribute = tf.distribute.experimental
def handler(jobs):
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec(jobs))
    return distribute.PreemptionCheckpointHandler(resolver, tf.train.Checkpoint(), tempfile.mkdtemp())
os.environ["GCE_METADATA_IP"] = "127.0.0.1:1"
try:
    handler({"worker": ["127.0.0.1:1"], "ps": ["127.0.0.1:2"]})
except NotImplementedError as error:
    print(error)
handler({})
print("here:", signal.getsignal(signal.SIGTERM) != signal.SIG_DFL)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
metadata = pathlib.Path(tempfile.mkdtemp(), "computeMetadata/v1/instance/hostname")
metadata.parent.mkdir(parents=True)
metadata.touch()
files = functools.partial(http.server.SimpleHTTPRequestHandler, directory=metadata.parents[3])
server = http.server.HTTPServer(("127.0.0.1", 0), files)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["GCE_METADATA_IP"] = f"127.0.0.1:{server.server_port}"
handler({})
print("Google's cloud:", signal.getsignal(signal.SIGTERM) != signal.SIG_DFL)
os.environ["GCE_METADATA_IP"] = "127.0.0.1:1"
with tf.distribute.MultiWorkerMirroredStrategy().scope():
    network = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    network.compile("sgd", "mse")
backup = tf.keras.callbacks.BackupAndRestore(tempfile.mkdtemp(), save_freq=False, save_before_preemption=True)
ends = tf.keras.callbacks.LambdaCallback(on_train_batch_begin=lambda *_: os.kill(os.getpid(), signal.SIGTERM))
sys.stdout.flush()
network.fit(tf.zeros([4, 1]), tf.zeros([4, 1]), callbacks=[backup, ends], verbose=0)
"""

pytestmark = [pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "distribution", "hosts"),
    [
        pytest.param("train_resume.py", None, 1, id="one host"),
        pytest.param("train_resume_mwms.py", MultiWorkerMirrored(), 2, id="mirrored"),
        pytest.param("train_fit.py", MultiWorkerMirrored(), 2, id="fit"),
        pytest.param("train_resume_hvd.py", MPI(processes_per_host=1), 2, id="horovod", marks=pytest.mark.mpi),
        pytest.param("train_resume_ps.py", ParameterServer(coordinator=True), 1, id="parameter server"),
    ],
)
def test_a_job_saves_at_the_notice_and_its_next_run_takes_the_next_step(jobs, program, distribution, hosts):
    name = start(jobs, program, distribution, hosts)
    jobs.until_line(name, "step 20")
    jobs.kill(name, number=signal.SIGTERM)
    until(lambda: not jobs.job_folder(name).has_agent())
    assert jobs.job_folder(name).read_state().secondary == "Interrupted", jobs.why(name)
    jobs.completed(name)
    log = "\n".join(jobs.lines(name))
    assert re.findall(r"resumed at step (\d+)", log) == re.findall(r"stopped at step (\d+)", log) != [], log
    made = [int(step) for step in re.findall(r" step (\d+)(?: of|$)", log.replace("at step", ""), re.MULTILINE)]
    assert made == [*range(1, EPOCHS * STEPS + 1)]
    assert "from its newest checkpoint, which was " in log


def start(jobs, program, distribution, hosts):
    estimator = Estimator(
        entry_point=program,
        source_dir=str(NOTEBOOKS / "code"),
        instance_count=hosts,
        platform=jobs.platform,
        distribution=distribution,
        # Only the notice and the end save.
        hyperparameters={
            "epochs": EPOCHS, "steps-per-epoch": STEPS, "batch-size": 16, "log-steps": 1, "checkpoint-steps": 10**6
        },
        environment={"TF_CPP_MIN_LOG_LEVEL": "2"},
        max_retry_attempts=1,
        checkpoint_s3_uri=(jobs.folder / "kept").as_uri(),
        **jobs.estimator_arguments(),
    )  # fmt: skip
    return estimator.fit({each: (DATA / each).as_uri() for each in ("train", "eval")}, wait=False).name


def test_what_tensorflow_does_at_sigterm_where_its_handlers_are_of_no_use(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", REFUSALS], check=False, capture_output=True, text=True, timeout=600,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    ps, here, elsewhere = done.stdout.splitlines()
    assert "does not support" in ps
    assert (here, elsewhere) == ("here: True", "Google's cloud: False")
    # `save_before_preemption` handled no signal.
    assert done.returncode == -signal.SIGTERM, done.stderr[-2000:]
