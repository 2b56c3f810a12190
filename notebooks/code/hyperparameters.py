"""Command-line arguments of the training programs, and the variables of a training job.

Shared by the programs in this directory; needs neither TensorFlow nor NumPy.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TRAIN_CHANNEL = "train"
EVAL_CHANNEL = "eval"

#: Parsed arguments: one attribute for each hyperparameter.
Namespace = argparse.Namespace


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser for the common hyperparameters; a program adds its own."""
    summary = (description or "").partition("\n")[0]
    result = argparse.ArgumentParser(description=summary, allow_abbrev=False)
    add = result.add_argument
    add("--epochs", type=positive, default=5, help="passes of each trainer over its shard")
    add("--batch-size", type=positive, default=64, help="images in one step of one trainer")
    add("--learning-rate", type=float, default=0.002)
    add(
        "--steps-per-epoch",
        type=positive,
        help="steps of one trainer in an epoch; default: the batches in its shard (File mode only)",
    )
    add("--seed", type=int, default=1)
    add(
        "--model_dir",
        help="accepted because SageMaker passes it; the trained model goes to SM_MODEL_DIR",
    )
    return result


def network_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser for programs that also support any size of images and any width of the network."""
    result = parser(description)
    result.add_argument(
        "--width", type=positive, default=64, help="units of the dense layer, which has most of the parameters"
    )
    result.add_argument(
        "--evaluate-every", type=positive, help="evaluate the network every N epochs; default: only at the end"
    )
    return result


def positive(text: str) -> int:
    """Parse an integer of at least 1; raise ``argparse.ArgumentTypeError`` for anything else."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        message = f"{text!r} is not a whole number of at least 1"
        raise argparse.ArgumentTypeError(message)
    return number


def channel(name: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the directory of an input channel; end the program with a message if the job has no such channel."""
    variable = f"SM_CHANNEL_{name.upper()}"
    if not environ.get(variable):
        message = f"the job has no channel {name!r} ({variable} is not set): fit({{{name!r}: ...}})"
        raise SystemExit(message)
    return Path(environ[variable])


def model_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the directory that becomes model.tar.gz; ``/opt/ml/model`` outside a training job."""
    return Path(environ.get("SM_MODEL_DIR", "/opt/ml/model"))


def output_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the directory that becomes output.tar.gz; outside a training job it is beside the model directory."""
    return environ.get("SM_OUTPUT_DATA_DIR") or str(model_folder(environ).with_name("output"))


def checkpoint_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the checkpoint directory, which the platform uploads while the job runs; it is beside the model directory.

    The next job finds its checkpoints there (CheckpointConfig in CreateTrainingJob).
    """
    return model_folder(environ).with_name("checkpoints")


def is_sharded(name: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether each host has only its own shard of the channel's files."""
    return _config(name, environ).get("S3DistributionType") == "ShardedByS3Key"


def is_piped(name: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether a channel is in Pipe mode: one stream for each epoch, and no files."""
    return _config(name, environ).get("TrainingInputMode") == "Pipe"


def rank_channel(local_rank: int, local_size: int, environ: Mapping[str, str] = os.environ) -> str:
    """Return the train channel of one of a host's ranks: ``train_<local rank>`` if the job has it, else ``train``.

    A pipe has one reader: end the program with a message if several ranks would share a pipe.
    """
    own = f"{TRAIN_CHANNEL}_{local_rank}"
    if own in json.loads(environ.get("SM_CHANNELS") or "[]"):
        return own
    if is_piped(TRAIN_CHANNEL, environ) and local_size > 1:
        names = ", ".join(repr(f"{TRAIN_CHANNEL}_{rank}") for rank in range(local_size))
        message = (
            f"channel {TRAIN_CHANNEL!r} is in Pipe mode, and the {local_size} ranks of a host cannot share its pipe: "
            f"give each rank its own channel: {names}"
        )
        raise SystemExit(message)
    return TRAIN_CHANNEL


def steps_of_pipe(arguments: Namespace, name: str) -> int:
    """Return the steps of an epoch of a channel in Pipe mode, whose length is not known."""
    if arguments.steps_per_epoch is None:
        message = (
            f"channel {name!r} is in Pipe mode, so its length is unknown: give the hyperparameter 'steps-per-epoch', "
            "the images of one trainer divided by the batch size"
        )
        raise SystemExit(message)
    return int(arguments.steps_per_epoch)


def _config(name: str, environ: Mapping[str, str]) -> Mapping[str, str]:
    config: Mapping[str, Mapping[str, str]] = json.loads(environ.get("SM_INPUT_DATA_CONFIG") or "{}")
    return config.get(name, {})


def host_count(environ: Mapping[str, str] = os.environ) -> int:
    """Return the number of hosts of the training job; 1 outside a training job."""
    return len(json.loads(environ.get("SM_HOSTS") or "[]")) or 1


def task(environ: Mapping[str, str] = os.environ) -> tuple[str, int, Mapping[str, Sequence[str]]]:
    """Parse ``TF_CONFIG``: this process's job name and index, and the cluster (empty if there is none)."""
    config = json.loads(environ.get("TF_CONFIG") or "{}")
    own = config.get("task", {})
    return own.get("type", "chief"), int(own.get("index", 0)), config.get("cluster", {})
