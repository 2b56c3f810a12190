"""What the training programs take from the command line and from the training job's variables.

Shared by the programs of this folder; needs neither TensorFlow nor NumPy.
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

#: What a program's parser gives: one attribute for each hyperparameter.
Namespace = argparse.Namespace


def parser(description: str | None) -> argparse.ArgumentParser:
    """Give the parser of the hyperparameters that every program has; a program adds its own."""
    summary = (description or "").partition("\n")[0]
    result = argparse.ArgumentParser(description=summary, allow_abbrev=False)
    add = result.add_argument
    add("--epochs", type=positive, default=5, help="times each trainer goes through its share")
    add("--batch-size", type=positive, default=64, help="images in one step of one trainer")
    add("--learning-rate", type=float, default=0.002)
    add(
        "--steps-per-epoch",
        type=positive,
        help="steps of one trainer in an epoch; default: as many as its share has batches (of files only)",
    )
    add("--seed", type=int, default=1)
    add(
        "--model_dir",
        help="accepted because SageMaker passes it; the trained model goes to SM_MODEL_DIR",
    )
    return result


def network_parser(description: str | None) -> argparse.ArgumentParser:
    """Give the parser of the programs that take images of any size and a network of any width besides."""
    result = parser(description)
    result.add_argument("--width", type=positive, default=64, help="units of the dense layer: most of the parameters")
    result.add_argument(
        "--evaluate-every", type=positive, help="score the network after so many epochs; default: at the end alone"
    )
    return result


def positive(text: str) -> int:
    """Read a whole number of at least 1; raises ``argparse.ArgumentTypeError`` for anything else."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        message = f"{text!r} is not a whole number of at least 1"
        raise argparse.ArgumentTypeError(message)
    return number


def channel(name: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Give the folder of an input channel; ends the program with a message when the job has none."""
    variable = f"SM_CHANNEL_{name.upper()}"
    if not environ.get(variable):
        message = f"the job has no channel {name!r} ({variable} is not set): fit({{{name!r}: ...}})"
        raise SystemExit(message)
    return Path(environ[variable])


def model_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Give the folder that becomes model.tar.gz; ``/opt/ml/model`` outside a training job."""
    return Path(environ.get("SM_MODEL_DIR", "/opt/ml/model"))


def checkpoint_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Give the folder whose content the platform keeps while the job runs: beside the model's.

    A job that is started again finds its checkpoints there (CheckpointConfig in CreateTrainingJob).
    """
    return model_folder(environ).with_name("checkpoints")


def is_sharded(name: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether a host's channel has only its own part of the channel's files."""
    return _config(name, environ).get("S3DistributionType") == "ShardedByS3Key"


def is_piped(name: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Tell whether a channel is in Pipe mode: a stream for each epoch, and no files."""
    return _config(name, environ).get("TrainingInputMode") == "Pipe"


def rank_channel(local_rank: int, local_size: int, environ: Mapping[str, str] = os.environ) -> str:
    """Give the train channel of one of a host's ranks: ``train_<local rank>`` if the job has it, else ``train``.

    A pipe has one reader: ends the program with a message when several ranks would share one.
    """
    own = f"{TRAIN_CHANNEL}_{local_rank}"
    if own in json.loads(environ.get("SM_CHANNELS") or "[]"):
        return own
    if is_piped(TRAIN_CHANNEL, environ) and local_size > 1:
        names = ", ".join(repr(f"{TRAIN_CHANNEL}_{rank}") for rank in range(local_size))
        message = (
            f"channel {TRAIN_CHANNEL!r} is in Pipe mode, and the {local_size} ranks of a host cannot share its pipe: "
            f"give each a channel of its own, {names}"
        )
        raise SystemExit(message)
    return TRAIN_CHANNEL


def steps_of_pipe(arguments: Namespace, name: str) -> int:
    """Give the steps of an epoch of a channel in Pipe mode, which does not tell how much it will bring."""
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
    """Count the hosts of the training job; outside one there is this host."""
    return len(json.loads(environ.get("SM_HOSTS") or "[]")) or 1


def task(environ: Mapping[str, str] = os.environ) -> tuple[str, int, Mapping[str, Sequence[str]]]:
    """Read ``TF_CONFIG``: this process's job name and index, and the cluster (empty: alone)."""
    config = json.loads(environ.get("TF_CONFIG") or "{}")
    own = config.get("task", {})
    return own.get("type", "chief"), int(own.get("index", 0)), config.get("cluster", {})
