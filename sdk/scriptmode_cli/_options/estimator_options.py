"""The options of ``run`` and ``plan``, which stand for the arguments of an estimator."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import click

from scriptmode_cli._options import job_file, options

_AT_LEAST_1 = click.IntRange(min=1)
#: For arguments of the estimator with an option each: the metavariable and the help.
_SINGLE = {
    "source_dir": ("DIRECTORY", "Directory with PROGRAM and the modules it imports, packed as the source archive."),
    "instance_type": ("TYPE", ""),
    "instance_count": ("N", "Number of hosts. [default: 1]"),
    "input_mode": ("MODE", "How hosts read inputs: File (copies), Pipe, or FastFile (on demand). [default: File]"),
    "output_path": ("DIRECTORY|URI", "Where the model and other output are written: a directory, or an s3:// URI."),
    "checkpoint_s3_uri": ("DIRECTORY|URI", "Where checkpoints are kept and restored from: as --output-path."),
    "role": ("ROLE", "IAM role of the job: its ARN or name. Amazon SageMaker only."),
    "image_uri": ("URI", "Training image, for jobs in containers and on Amazon SageMaker."),
    "framework_version": ("VERSION", "TensorFlow version that selects the training image, instead of --image-uri."),
    "py_version": ("VERSION", "Python version of AWS's training image, such as py310, with --framework-version."),
    "volume_size": ("GB", "Size of each host's storage volume in GB. Amazon SageMaker only. [default: 30]"),
    "max_run": ("SECONDS", "Time limit of the job in seconds. [default: 86400, one day]"),
}  # fmt: skip


class _SingleOption(click.Option):
    """Option for an argument; that of the instance type lists the kinds of hosts, which takes time to find."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option's names and its help."""
        from scriptmode._core.spec import instance_types

        self.help = self.help or f"Type of the hosts: {instance_types.describe()}. [default: local_process]"
        return super().get_help_record(ctx)


_TYPES = job_file.estimator_arguments()
#: Options that stand for one argument of the estimator each, by that argument, with its name and type.
SINGLE_OPTIONS = {
    argument: click.option(
        f"--{argument.replace('_', '-')}",
        cls=_SingleOption,
        type=_AT_LEAST_1 if int in _TYPES[argument] else click.Path() if argument == "source_dir" else None,
        metavar=metavar,
        help=text,
    )
    for argument, (metavar, text) in _SINGLE.items()
}
#: Options that add one entry to an argument each time they are given.
_REPEATED_OPTIONS = (
    click.option("-p", "--hyperparameter", "hyperparameters", metavar="NAME=VALUE", multiple=True,
                 help="Hyperparameter, passed to PROGRAM as --NAME VALUE. May be repeated."),
    click.option("--input", "inputs", metavar="NAME=PATH|URI", multiple=True,
                 help="Input channel NAME: a file or directory of this machine, or an s3:// URI. May be repeated."),
    click.option("--shard", "shards", metavar="NAME", multiple=True,
                 help="Input channel of which each host gets a part of the files, instead of all. May be repeated."),
    click.option("--metric", "metrics", metavar="NAME=REGEX|keras", multiple=True,
                 help="Metric to find in the log: the first group of REGEX is the value; keras stands for all "
                 "metrics that Keras prints. May be repeated."),
    click.option("--env", "environment", metavar="NAME=VALUE", multiple=True,
                 help="Environment variable of PROGRAM. May be repeated."),
    click.option("--tag", "tags", metavar="NAME=VALUE", multiple=True,
                 help="Tag of the training job. May be repeated."),
    click.option("--dependency", "dependencies", metavar="PATH", multiple=True, type=click.Path(),
                 help="File or directory to add to the source archive. May be repeated."),
    click.option("--set", "others", metavar="NAME=JSON", multiple=True,
                 help="Any argument of scriptmode.Estimator that has no option of its own, such as "
                 "max_retry_attempts=3. May be repeated."),
)  # fmt: skip
_DISTRIBUTION_OPTIONS = (
    click.option("--distribution", metavar="KIND",
                 help="Distributed training strategy: mpi, parameter-server or multi-worker-mirrored. [default: none]"),
    click.option("--processes-per-host", type=_AT_LEAST_1, metavar="N",
                 help="Number of MPI processes on each host. [default: the number of GPUs, or 1]"),
    click.option("--coordinator", is_flag=True,
                 help="Run PROGRAM on the first host only, as coordinator of TensorFlow 2's ParameterServerStrategy."),
    click.option("--ps", type=_AT_LEAST_1, metavar="N",
                 help="Number of hosts, the last ones, that are parameter servers alone. [default: each has one]"),
    click.option("--evaluator", is_flag=True,
                 help="Run PROGRAM a second time on the last host, as TensorFlow's evaluator."),
)  # fmt: skip
#: The option that stands for each argument of the estimator and of ``fit``. ``--set`` stands for the others.
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


#: The value may be left out.
queue_option = click.option(
    "--queue", type=_AT_LEAST_1, metavar="[N]", is_flag=False, flag_value=1,
    help="Wait until fewer than N jobs of this machine run, and start in the order of creation. N is 1 if it is left "
    "out.",
)  # fmt: skip


def estimator_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add PROGRAM and the options that stand for the arguments of an estimator."""
    first = (
        click.argument("program", required=False, type=click.Path()),
        click.option("--file", type=click.Path(path_type=Path),
                     help="TOML or YAML file with arguments of the job. Options override it."),
        options.job_name_option("Name of the job. [default: a name with the current time]"),
    )  # fmt: skip
    others = (*_DISTRIBUTION_OPTIONS, *_REPEATED_OPTIONS, options.account_options)
    decorators = (*first, *SINGLE_OPTIONS.values(), *others, options.force_option, options.json_option)
    return options.add_options(decorators)(command)
