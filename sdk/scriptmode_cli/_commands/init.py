"""``scriptmode init``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from scriptmode import DataError, SpecError
from scriptmode_cli._options.options import json_option
from scriptmode_cli._program import output

_TRAIN = '''\
"""Train a small model: y = 3 x + 2."""

import argparse
import csv
import os
from pathlib import Path

# Hyperparameters of the job are arguments of the script. A wrong one ends it before TensorFlow is loaded.
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--learning-rate", type=float, default=0.1)
arguments = parser.parse_args()

import tensorflow as tf  # noqa: E402

# Each input channel is a directory: the channel "train" is in SM_CHANNEL_TRAIN.
rows = []
for path in sorted(Path(os.environ["SM_CHANNEL_TRAIN"]).glob("*.csv")):
    with path.open(newline="") as file:
        rows += [[float(cell) for cell in row] for row in csv.reader(file)]
data = tf.constant(rows)

model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
model.compile(optimizer=tf.keras.optimizers.SGD(arguments.learning_rate), loss="mse")
model.fit(data[:, :1], data[:, 1:], epochs=arguments.epochs, batch_size=16, validation_split=0.2, verbose=2)

# What is saved in SM_MODEL_DIR becomes the model of the job.
model.save_weights(os.path.join(os.environ["SM_MODEL_DIR"], "model.weights.h5"))
'''
_JOB = """\
# A training job; paths begin at this directory. Run it: scriptmode run --file job.toml
entry_point = "train.py"

# Each host is a process of this machine. "local" runs containers, "ml.m5.xlarge" on Amazon SageMaker (with a role,
# a framework_version and s3:// inputs).
instance_type = "local_process"
instance_count = 1
# For several hosts or processes: "mpi", "parameter-server" or "multi-worker-mirrored".
# distribution = "mpi"

# What to find in the log: all metrics that Keras prints.
metric_definitions = "keras"

# Arguments of the script.
[hyperparameters]
epochs = 5
"learning-rate" = 0.1

# Channels: directories or files of this machine, or s3:// URIs.
[inputs]
train = "data"
"""
_TEST = '''\
"""Tests of train.py, which run it as a training job does: pytest"""

import pytest


def test_a_learned_model_is_saved(entry_point):
    pytest.importorskip("tensorflow")
    run = entry_point("train.py", inputs={"train": "data"}, metric_definitions="keras")
    assert run.exit_code == 0, run.log
    loss = run.metrics.values("loss")
    assert loss[-1] < loss[0]
    assert (run.model / "model.weights.h5").exists()


def test_a_wrong_hyperparameter_is_refused(entry_point):
    run = entry_point("train.py", inputs={"train": "data"}, hyperparameters={"epochs": "many"})
    assert run.exit_code == 2
    assert "invalid int value: 'many'" in run.log
'''
_ROWS = 64


@click.command()
@click.argument("directory", metavar="[DIRECTORY]", default=".", type=click.Path(path_type=Path))
@json_option
def init(directory: Path, *, as_json: bool) -> None:
    """Write a training script, its test, a job file and a little data to start from.

    The files are DIRECTORY/train.py, DIRECTORY/test_train.py, DIRECTORY/job.toml and DIRECTORY/data/numbers.csv;
    DIRECTORY is the current directory by default. They run as they are, with TensorFlow; the test needs pytest.
    Existing files are never overwritten.

    \b
    Example:
      scriptmode init first
      scriptmode run --file first/job.toml
      pytest first
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    numbers = "".join(f"{x / _ROWS},{3 * x / _ROWS + 2}\n" for x in range(_ROWS))
    files = {"train.py": _TRAIN, "test_train.py": _TEST, "job.toml": _JOB, "data/numbers.csv": numbers}
    paths = [directory / name for name in files]
    existing = [str(path) for path in paths if path.exists() or path.is_symlink()]
    if existing:
        what = f"{', '.join(existing)} {'exist' if existing[1:] else 'exists'} already, and nothing was written"
        raise SpecError(what, advice="name another DIRECTORY")
    if directory.exists() and not directory.is_dir():
        raise SpecError(f"{directory} is not a directory, and nothing was written", advice="name another DIRECTORY")
    try:
        for path, text in zip(paths, files.values()):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}", advice="name another DIRECTORY") from error
    step = f"run it: scriptmode run --file {shlex.quote(str(directory / 'job.toml'))}"
    lines = [*(f"wrote {path}" for path in paths), step]
    output.print_result({"files": list(map(str, paths))}, "\n".join(lines), as_json=as_json)
