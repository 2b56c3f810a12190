"""The options of ``run`` and ``plan``: what an estimator takes, as words."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import click

from scriptmode.cli import completers
from scriptmode.cli.options import account_options, job_name_option, json_option, platform_option

_AT_LEAST_1 = click.IntRange(min=1)
#: Options that give one argument of the estimator, by the argument.
SINGLE_OPTIONS = {
    "source_dir": click.option(
        "--source-dir",
        metavar="FOLDER",
        shell_complete=completers.complete_directory,
        help="Where PROGRAM and what it imports are.",
    ),
    "instance_type": click.option(
        "--instance-type",
        metavar="TYPE",
        shell_complete=completers.complete_choice("local_process", "local", "local_gpu"),
        help="local_process, local (containers) or ml.*. [default: local_process]",
    ),
    "instance_count": click.option("--instance-count", type=_AT_LEAST_1, metavar="N", help="So many hosts."),
    "input_mode": click.option(
        "--input-mode",
        metavar="MODE",
        shell_complete=completers.complete_choice("File", "Pipe", "FastFile"),
        help="File, Pipe or FastFile.",
    ),
    "output_path": click.option("--output-path", metavar="PLACE", help="Where the model goes: s3://..., or a folder."),
    "checkpoint_s3_uri": click.option("--checkpoint-s3-uri", metavar="PLACE", help="Where checkpoints go."),
    "role": click.option("--role", help="Amazon SageMaker's role for the job."),
    "image_uri": click.option("--image-uri", metavar="URI", help="The training image."),
    "framework_version": click.option("--framework-version", metavar="VERSION", help="TensorFlow's."),
    "py_version": click.option("--py-version", metavar="VERSION", help="Python's in AWS's image, such as py310."),
    "volume_size": click.option("--volume-size", type=_AT_LEAST_1, metavar="GB", help="Each host's disk."),
    "max_run": click.option("--max-run", type=_AT_LEAST_1, metavar="SECONDS", help="The job's time. [default: a day]"),
}
#: Options that give one entry of an argument each.
_SEVERAL = (
    click.option("-p", "--hyperparameter", "hyperparameters", metavar="NAME=VALUE", multiple=True,
                 help="Given to PROGRAM as --NAME VALUE; may be repeated, as all up to --set."),
    click.option("--input", "inputs", metavar="NAME=PLACE", multiple=True, shell_complete=completers.complete_channel,
                 help="A channel: s3://..., or a folder."),
    click.option("--metric", "metrics", metavar="NAME=REGEX", multiple=True, help="What to find in the log."),
    click.option("--env", "environment", metavar="NAME=VALUE", multiple=True, help="A variable of the hosts."),
    click.option("--tag", "tags", metavar="NAME=VALUE", multiple=True, help="A tag of the job."),
    click.option("--dependency", "dependencies", metavar="PATH", multiple=True, shell_complete=completers.complete_file,
                 help="A file or folder to go with it."),
    click.option("--set", "others", metavar="NAME=JSON", multiple=True, help="Any other argument of the Estimator."),
)  # fmt: skip
DISTRIBUTION_OPTIONS = (
    click.option(
        "--distribution",
        metavar="KIND",
        shell_complete=completers.complete_choice("mpi", "parameter-server", "multi-worker-mirrored"),
        help="mpi, parameter-server or multi-worker-mirrored.",
    ),
    click.option("--processes-per-host", type=_AT_LEAST_1, metavar="N", help="Ranks of each host, with mpi."),
    click.option("--coordinator", is_flag=True, help="TensorFlow 2's parameter servers."),
    click.option("--evaluator", is_flag=True, help="An evaluator beside the last host's own part."),
)
#: What says each argument of the estimator, where it is not ``--set``.
OPTION_NAMES = {
    **{argument: f"--{argument.replace('_', '-')}" for argument in SINGLE_OPTIONS},
    "entry_point": "PROGRAM",
    "hyperparameters": "--hyperparameter",
    "metric_definitions": "--metric",
    "environment": "--env",
    "tags": "--tag",
    "dependencies": "--dependency",
    "distribution": "--distribution",
    "processes_per_host": "--processes-per-host",
    "inputs": "--input",
    "job_name": "--job-name",
}


def estimator_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add PROGRAM and the options."""
    first = (
        click.argument("program", required=False, shell_complete=completers.complete_file),
        click.option("--file", type=click.Path(path_type=Path), help="TOML or YAML; options win over it."),
        job_name_option("[default: one with the time in it]"),
    )
    command = json_option(
        account_options(platform_option("Where the job must run. [default: what --instance-type says]")(command))
    )
    for option in reversed((*first, *SINGLE_OPTIONS.values(), *DISTRIBUTION_OPTIONS, *_SEVERAL)):
        command = option(command)
    return command
