"""``scriptmode jobs``: the commands of Cloud ML Engine, for this machine and Amazon SageMaker.

Its options are those of ``gcloud ai-platform jobs submit training`` (``gcloud ml-engine`` before), by the reference of
the Google Cloud SDK. --platform, --profile, --input, --role, --image-uri and --force have no counterpart there.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import click

from scriptmode import Estimator, SpecError, TrainingInput, TrainingJob
from scriptmode_cli._cloud_ml_engine import package, settings
from scriptmode_cli._commands.describe import describe
from scriptmode_cli._options import following
from scriptmode_cli._options.locations import location_uri, resolve_location
from scriptmode_cli._options.options import PLATFORMS, account_options, add_options, force_option, job_options
from scriptmode_cli._options.program_arguments import ProgramCommand, arguments_after_dashes, parse_hyperparameters
from scriptmode_cli._options.run_options import platform_arguments
from scriptmode_cli._options.values import parse_pairs
from scriptmode_cli._program import output
from scriptmode_cli._program.error_reporting import EXIT_CODES_HELP, translate_errors_to_options
from scriptmode_cli._program.group import Group

#: Name, parameter, placeholder and help. Parameters with the name of a key of TrainingInput override the file.
_TEXT_OPTIONS = (
    ("--module-name", "pythonModule", "NAME", "Module to run, with its package, such as trainer.task."),
    (
        "--staging-bucket", "staging", "DIRECTORY|URI",
        "Where the package and the model are stored: a directory of this machine, or an s3:// URI.",
    ),
    (
        "--job-dir", "jobDir", "DIRECTORY|URI",
        "Directory of this machine or s3:// URI that the script gets as its argument --job-dir.",
    ),
    ("--runtime-version", "runtimeVersion", "VERSION", "TensorFlow version that selects the training image."),
    ("--role", "role", "ROLE", "IAM role of the job: its ARN or name. Amazon SageMaker only."),
    ("--image-uri", "image_uri", "URI", "Training image. Amazon SageMaker only."),
)  # fmt: skip
_COUNT_OPTIONS = (("--worker-count", "workerCount"), ("--parameter-server-count", "parameterServerCount"))
_training_options = add_options(
    (
        click.option(
            "--package-path", type=click.Path(exists=True, path_type=Path), required=True, metavar="DIRECTORY",
            help="Directory of the Python package that contains the training module.",
        ),
        *(click.option(name, key, metavar=metavar, help=text) for name, key, metavar, text in _TEXT_OPTIONS),
        click.option(
            "--config", type=click.File("rb"), metavar="PATH",
            help="YAML file with the job's trainingInput: its scaleTier and machines. Options override it.",
        ),
        *(
            click.option(name, key, type=click.IntRange(min=0), metavar="N", help="With scaleTier CUSTOM. [default: 0]")
            for name, key in _COUNT_OPTIONS
        ),
        click.option(
            "--input", "inputs", metavar="NAME=PATH|URI", multiple=True,
            help="Input channel NAME: a file or directory of this machine, or an s3:// URI. May be repeated.",
        ),
        click.option(
            "--platform", type=click.Choice(PLATFORMS), default="local", show_default=True,
            help="Platform that runs the job.",
        ),
        account_options,
        force_option,
        click.option(
            "--stream-logs", is_flag=True,
            help="Follow the log until the job ends, and exit with the exit code of the job.",
        ),
        following.plain_option,
    )
)  # fmt: skip
#: The option that stands for each argument of the estimator and of ``fit``.
_OPTION_NAMES = {
    **dict.fromkeys(("output_path", "code_location"), "--staging-bucket"),
    **dict.fromkeys(("hyperparameters", "arguments"), "the arguments after --"),
    "role": "--role", "image_uri": "--image-uri", "framework_version": "--runtime-version", "inputs": "--input",
    "job_name": "NAME",
}  # fmt: skip


@click.group(cls=Group)
def jobs() -> None:
    """Submit and follow training jobs with the commands of Cloud ML Engine.

    The commands and options are those of gcloud ml-engine jobs and gcloud ai-platform jobs.

    \b
    Example:
      scriptmode jobs submit training mnist-1 --package-path trainer --module-name trainer.task
      scriptmode jobs stream-logs mnist-1
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap


@jobs.group(cls=Group)
def submit() -> None:
    """Submit a training job.

    \b
    Example:
      scriptmode jobs submit training mnist-1 --package-path trainer --module-name trainer.task
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap


@submit.command(cls=ProgramCommand, epilog=EXIT_CODES_HELP.replace("Exit code", "Exit code with --stream-logs", 1))
@click.argument("name")
@_training_options
def training(name: str, config: BinaryIO | None, *, stream_logs: bool, **given: Any) -> None:
    """Submit the training job NAME, which runs a module of a Python package on the machines of a scale tier.

    ARGUMENTS are passed to the module. On this machine, every machine of the tier is a process.

    \b
    Example:
      scriptmode jobs submit training mnist-1 --package-path trainer --module-name trainer.task \\
        --staging-bucket s3://bucket --config config.yaml -- --max_steps=1000
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    following.require_view_to_follow(wait=stream_logs, is_plain=given["is_plain"], as_json=False)
    is_local = given["platform"] == "local"
    training_input = settings.parse_settings(config, {**given, "args": list(arguments_after_dashes()) or None})
    if "pythonModule" not in training_input:
        raise SpecError("--module-name is missing", advice="name the module to run, such as trainer.task")
    machines = settings.count_machines(training_input)
    with tempfile.TemporaryDirectory() as directory, translate_errors_to_options(_OPTION_NAMES):
        estimator = Estimator(
            **settings.instance_arguments(machines, training_input, is_local=is_local),
            **platform_arguments(given, is_local=is_local),
            **package.source_arguments(given["package_path"], training_input["pythonModule"], Path(directory)),
            **_output_locations(given["staging"], is_local=is_local),
            **_script_arguments(training_input, is_local=is_local),
            role=given["role"],
            image_uri=given["image_uri"],
            framework_version=training_input.get("runtimeVersion"),
        )
        job = estimator.fit(_inputs(given["inputs"], machines, is_local=is_local), wait=False, job_name=name)
    with following.hint_on_write_error(job):
        output.echo(f"training job {name} submitted: {settings.format_machines(machines)}")
        if stream_logs:
            following.follow_job(job, is_plain=given["is_plain"])
        else:
            output.echo(f"follow it: scriptmode jobs stream-logs {name}; stop it: scriptmode stop {name}")


@jobs.command("stream-logs", epilog=EXIT_CODES_HELP)
@job_options
@following.plain_option
def stream_logs(job: TrainingJob, *, is_plain: bool) -> None:
    """Follow the log of JOB until the job ends.

    \b
    Example:
      scriptmode jobs stream-logs mnist-1
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    following.follow_job(job, is_plain=is_plain)


_describe = copy.copy(describe)
_describe.help = (describe.help or "").replace("scriptmode describe ", "scriptmode jobs describe ")
jobs.add_command(_describe, "describe")


def _script_arguments(training_input: Mapping[str, Any], *, is_local: bool) -> dict[str, Any]:
    """Return the estimator's arguments for those of the script, with the job's directory as the service passes it."""
    words = list(training_input.get("args", ()))
    if "jobDir" in training_input:
        if training_input["jobDir"].startswith("gs://"):
            raise SpecError(f"--job-dir is {training_input['jobDir']!r}", advice="give an s3:// URI or a directory")
        words += ["--job-dir", resolve_location("--job-dir", training_input["jobDir"], is_local=is_local)]
    hyperparameters = parse_hyperparameters(words)
    return {"arguments": words} if hyperparameters is None else {"hyperparameters": hyperparameters}


def _output_locations(staging: str | None, *, is_local: bool) -> dict[str, Any]:
    if staging is None:
        return {}
    uri = location_uri("--staging-bucket", staging, is_local=is_local).rstrip("/")
    return {"output_path": uri, "code_location": f"{uri}/packages"}


def _inputs(words: tuple[str, ...], machines: Mapping[str, int], *, is_local: bool) -> dict[str, TrainingInput] | None:
    """Return the channels; in a cluster the parameter servers do not get them."""
    groups = [role for role in machines if role != "ps"] if len(machines) > 1 else []
    pairs = parse_pairs("--input", words, "train=s3://bucket/train").items()
    return {
        name: TrainingInput(location_uri(f"--input {name}", place, is_local=is_local), instance_groups=groups)
        for name, place in pairs
    } or None
