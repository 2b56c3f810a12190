"""The command and the options of ``run`` and ``plan``, which stand for the arguments of an estimator."""

from __future__ import annotations

from typing import Any, Callable

import click
from click.shell_completion import CompletionItem

from scriptmode_cli._options import options
from scriptmode_cli._options.set_option import estimator_arguments
from scriptmode_cli._program.group import split_at_dashes
from scriptmode_cli._program.usage_errors import AFTER_DASHES

_AT_LEAST_1 = click.IntRange(min=1)


class ProgramCommand(click.Command):
    """A command with arguments of the script after ``--``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words before ``--``, and keep the others for the script."""
        own, after = split_at_dashes(args)
        ctx.meta[AFTER_DASHES] = after if "--" in args else None
        return super().parse_args(ctx, own)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return completions: files after ``--``."""
        if ctx.meta.get(AFTER_DASHES) is not None:
            return [CompletionItem(incomplete, type="file")]
        return super().shell_complete(ctx, incomplete)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the pieces of the usage line, with what follows ``--`` at the end."""
        return [*super().collect_usage_pieces(ctx), "[-- ARGUMENTS]"]


def _once(name: str, metavar: str | None, text: str, **settings: Any) -> tuple[str, dict[str, Any]]:
    return name, {"metavar": metavar, "help": text, **settings}


def _repeated(name: str, metavar: str, text: str, **settings: Any) -> tuple[str, dict[str, Any]]:
    """Return an option that adds one entry to its argument each time it is given."""
    return _once(name, metavar, f"{text} May be repeated.", multiple=True, **settings)


class _InstanceType(click.Option):
    """The option whose help lists the kinds of hosts, which takes time to find."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option's names and its help."""
        from scriptmode._core.spec import instance_types

        self.help = f"Type of the hosts: {instance_types.describe()}. [default: local_process]"
        return super().get_help_record(ctx)


#: The option that stands for each argument and its settings, in the order of the help.
_OPTIONS = {
    "source_dir": _once("--source-dir", "DIRECTORY",
        "Directory with PROGRAM and the modules it imports, packed as the source archive.",
        type=click.Path()),
    "instance_type": _once("--instance-type", "TYPE", "", cls=_InstanceType),
    "instance_count": _once("--instance-count", "N", "Number of hosts. [default: 1]", type=_AT_LEAST_1),
    "sbatch": _once("--sbatch", "FILE",
        "Batch script whose #SBATCH lines the job has on Slurm; TYPE is slurm, and N its nodes, if they are left out.",
        type=click.Path()),
    "input_mode": _once("--input-mode", "MODE",
        "How hosts read inputs: File (copies), Pipe, or FastFile (on demand). [default: File]"),
    "output_path": _once("--output-path", "DIRECTORY|URI",
        "Where the model and other output are written: a directory of this machine, or an s3:// URI."),
    "checkpoint_s3_uri": _once("--checkpoint-s3-uri", "DIRECTORY|URI",
        "Where checkpoints are kept and restored from: a directory of this machine, or an s3:// URI. The script saves "
        "them in the directory checkpoints beside SM_MODEL_DIR."),
    "role": _once("--role", "ROLE", "IAM role of the job: its ARN or name. Amazon SageMaker only."),
    "image_uri": _once("--image-uri", "URI", "Training image, for jobs in containers and on Amazon SageMaker."),
    "framework_version": _once("--framework-version", "VERSION",
        "TensorFlow version that selects the training image, instead of --image-uri."),
    "py_version": _once("--py-version", "VERSION",
        "Python version of AWS's training image, such as py310. Used with --framework-version on Amazon SageMaker."),
    "volume_size": _once("--volume-size", "GB",
        "Size of each host's storage volume in GB. Amazon SageMaker only. [default: 30]", type=click.IntRange(min=0)),
    "max_run": _once("--max-run", "SECONDS",
        "Time limit of the job in seconds. [default: 86400, one day]", type=_AT_LEAST_1),
    "distribution": _once("--distribution", "KIND",
        "Distributed training strategy: mpi (or horovod), parameter-server or multi-worker-mirrored. [default: none]"),
    "processes_per_host": _once("--processes-per-host", "N",
        "Number of MPI processes on each host, with --distribution mpi. [default: the number of GPUs, or 1]",
        type=_AT_LEAST_1),
    "coordinator": _once("--coordinator", None,
        "Run PROGRAM on the first host only, as coordinator of TensorFlow 2's ParameterServerStrategy.", is_flag=True),
    "ps": _once("--ps", "N",
        "Number of hosts, the last ones, that are parameter servers alone. [default: each has one]", type=_AT_LEAST_1),
    "evaluator": _once("--evaluator", None,
        "Run PROGRAM a second time on the last host, as TensorFlow's evaluator.", is_flag=True),
    "hyperparameters": _repeated("--hyperparameter", "NAME=VALUE",
        "Hyperparameter, passed to PROGRAM as --NAME VALUE."),
    "inputs": _repeated("--input", "NAME=PATH|URI",
        "Input channel NAME: a file or directory of this machine, or an s3:// URI."),
    "shards": _repeated("--shard", "NAME",
        "Input channel of which each host gets a part of the files, instead of all."),
    "metric_definitions": _repeated("--metric", "NAME=REGEX|keras",
        "Metric to find in the log: the first group of REGEX is the value; keras stands for all metrics that Keras "
        "prints."),
    "environment": _repeated("--env", "NAME=VALUE", "Environment variable of PROGRAM."),
    "tags": _repeated("--tag", "NAME=VALUE", "Tag of the training job."),
    "dependencies": _repeated("--dependency", "PATH", "File or directory to add to the source archive.",
        type=click.Path()),
    "others": _repeated("--set", "NAME=JSON",
        "Any argument of scriptmode.Estimator that has no option of its own, such as max_retry_attempts=3."),
}  # fmt: skip
#: What a user writes for each argument of the estimator and of ``fit``.
OPTION_NAMES = {
    **{argument: f"--set {argument}=..." for argument in estimator_arguments()},
    **{argument: name for argument, (name, _) in _OPTIONS.items()},
    "entry_point": "PROGRAM",
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
    decorators = [
        click.argument("entry_point", metavar="[PROGRAM]", required=False, type=click.Path()),
        options.job_name_option("Name of the job. [default: a name with the current time]"),
    ]
    for argument, (name, settings) in _OPTIONS.items():
        names = ("-p", name, argument) if argument == "hyperparameters" else (name, argument)
        decorators.append(click.option(*names, **settings))
    decorators += [options.account_options, options.force_option, options.json_option]
    return options.add_options(decorators)(command)
