"""``scriptmode jobs submit training``: Cloud ML Engine's command, for this machine and Amazon SageMaker.

Its options are those of ``gcloud ai-platform jobs submit training`` (``gcloud ml-engine`` before), by the reference of
the Google Cloud SDK. --platform, --profile, --input, --role, --image-uri and --force have no counterpart there.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from scriptmode import Estimator, SpecError, TrainingInput
from scriptmode.cli import following, output
from scriptmode.cli.cloud_ml_engine import machines, package
from scriptmode.cli.cloud_ml_engine.config import parse_settings
from scriptmode.cli.error_reporting import EXIT_CODES_HELP, translate_errors_to_options
from scriptmode.cli.locations import location_uri, resolve_location
from scriptmode.cli.options import PLATFORMS, add_options, force_option, json_option, profile_option, use_region
from scriptmode.cli.program_arguments import ProgramCommand, arguments_after_dashes, parse_hyperparameters
from scriptmode.cli.run_options import platform_arguments
from scriptmode.cli.values import parse_pairs

_COUNT = click.IntRange(min=0)
#: Those that override a key of TrainingInput have its name.
_training_options = add_options(
    (
        click.option(
            "--package-path",
            type=click.Path(path_type=Path),
            required=True,
            metavar="DIRECTORY",
            help="Directory of the Python package that contains the training module.",
        ),
        click.option(
            "--module-name",
            "pythonModule",
            metavar="NAME",
            help="Module to run, with its package, such as trainer.task. Required unless the --config file names it.",
        ),
        click.option(
            "--staging-bucket",
            metavar="DIRECTORY|URI",
            help="Where the package and the model are stored: a directory of this machine, or an s3:// URI.",
        ),
        click.option(
            "--job-dir",
            "jobDir",
            metavar="DIRECTORY|URI",
            help="Directory of this machine or s3:// URI that the script gets as its argument --job-dir.",
        ),
        click.option(
            "--config",
            type=click.Path(path_type=Path),
            help="YAML file with the job's trainingInput and labels. Options override it.",
        ),
        click.option(
            "--scale-tier",
            "scaleTier",
            metavar="TIER",
            help="Number and types of the machines: basic, basic-gpu, standard-1, premium-1 or custom. "
            "[default: basic]",
        ),
        click.option(
            "--master-machine-type", "masterType", metavar="TYPE", help="Type of the master. With --scale-tier custom."
        ),
        click.option(
            "--worker-machine-type", "workerType", metavar="TYPE", help="Type of the workers. With --scale-tier custom."
        ),
        click.option(
            "--worker-count",
            "workerCount",
            type=_COUNT,
            metavar="N",
            help="Number of workers. With --scale-tier custom. [default: 0]",
        ),
        click.option(
            "--parameter-server-machine-type",
            "parameterServerType",
            metavar="TYPE",
            help="Type of the parameter servers. With --scale-tier custom.",
        ),
        click.option(
            "--parameter-server-count",
            "parameterServerCount",
            type=_COUNT,
            metavar="N",
            help="Number of parameter servers. With --scale-tier custom. [default: 0]",
        ),
        click.option(
            "--runtime-version",
            "runtimeVersion",
            metavar="VERSION",
            help="TensorFlow version that selects the training image.",
        ),
        click.option(
            "--python-version",
            "pythonVersion",
            metavar="VERSION",
            help="Python version of AWS's training image, such as 3.10. Used with --runtime-version on Amazon "
            "SageMaker.",
        ),
        click.option("--labels", default="", metavar="KEY=VALUE,...", help="Tags of the training job."),
        click.option(
            "--stream-logs",
            is_flag=True,
            help="Follow the log until the job ends, and exit with the exit code of the job.",
        ),
        click.option("--async", "is_async", is_flag=True, hidden=True),  # gcloud's default, and the default here
        click.option(
            "--region", metavar="NAME", help="AWS Region that runs the job, such as us-east-1. Amazon SageMaker only."
        ),
        profile_option,
        click.option(
            "--platform",
            type=click.Choice(PLATFORMS),
            default="local",
            show_default=True,
            help="Platform that runs the job.",
        ),
        click.option(
            "--input",
            "inputs",
            metavar="NAME=PATH|URI",
            multiple=True,
            help="Input channel NAME: a file or directory of this machine, or an s3:// URI. May be repeated.",
        ),
        click.option("--role", metavar="ROLE", help="IAM role of the job: its ARN or name. Amazon SageMaker only."),
        click.option("--image-uri", metavar="URI", help="Training image. Amazon SageMaker only."),
        force_option,
        following.plain_option,
        json_option,
    )
)
#: The option that stands for each argument of the estimator and of ``fit``.
_OPTION_NAMES = {
    "output_path": "--staging-bucket",
    "code_location": "--staging-bucket",
    "role": "--role",
    "image_uri": "--image-uri",
    "framework_version": "--runtime-version",
    "py_version": "--python-version",
    "max_run": "scheduling.maxRunningTime in --config",
    "tags": "--labels",
    "inputs": "--input",
    "hyperparameters": "the arguments after --",
    "arguments": "the arguments after --",
    "job_name": "NAME",
}


@click.command(cls=ProgramCommand, epilog=EXIT_CODES_HELP.replace("Exit code", "Exit code with --stream-logs", 1))
@click.argument("name")
@_training_options
def training(name: str, config: Path | None, *, labels: str, stream_logs: bool, **given: Any) -> None:
    """Submit the training job NAME, which runs a module of a Python package on the machines of a scale tier.

    ARGUMENTS are passed to the module. On this machine, every machine of the tier is a process.

    \b
    Example:
      scriptmode jobs submit training mnist-1 --package-path trainer --module-name trainer.task \\
        --staging-bucket s3://bucket --config config.yaml -- --max_steps=1000
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    following.require_view_to_follow(wait=stream_logs, is_plain=given["is_plain"], as_json=given["as_json"])
    is_local = given["platform"] == "local"
    settings = parse_settings(config, {**given, "args": arguments_after_dashes()})
    python = settings.get("pythonVersion")
    found = machines.resolve_machines(settings, is_local=is_local)
    if not is_local:
        found = machines.to_sagemaker_types(found, settings["scaleTier"])
        region = settings.get("region")
        if region and re.fullmatch(r"[a-z]+-[a-z]+\d+", region):
            what = f"--region {region!r} is a region of Google Cloud"
            raise SpecError(what, advice="name an AWS Region, such as us-east-1")
        use_region(click.get_current_context(), None, region)
    with tempfile.TemporaryDirectory() as directory, translate_errors_to_options(_OPTION_NAMES):
        estimator = Estimator(
            **machines.instance_arguments(found),
            **platform_arguments(given, is_local=is_local),
            **_source(given["package_path"], settings, Path(directory)),
            **_output_locations(given["staging_bucket"], is_local=is_local),
            **_script_arguments(settings, is_local=is_local),
            role=given["role"],
            image_uri=given["image_uri"],
            framework_version=settings.get("runtimeVersion"),
            py_version=python and "py" + python.replace(".", ""),
            max_run=settings.get("scheduling"),
            tags={**settings["labels"], **_labels(labels)} or None,
        )
        job = estimator.fit(_inputs(given["inputs"], found, is_local=is_local), wait=False, job_name=_job_name(name))
    if given["as_json"]:
        following.print_description_json(job, wait=stream_logs)
        return
    with following.hint_on_write_error(job):
        output.echo(f"training job {name} submitted: {machines.format_machines(found)}")
        if stream_logs:
            following.follow_job(job, is_plain=given["is_plain"])
        else:
            output.echo(f"follow it: scriptmode jobs stream-logs {name}; cancel it: scriptmode jobs cancel {name}")


def _job_name(name: str) -> str:
    """Return a job's name; raise `SpecError` for underscores, which only Google's service allows."""
    if "_" in name:
        raise SpecError(
            f"NAME is {name!r}, but the name of a job cannot have underscores",
            advice=f"write {re.sub('_+', '-', name).strip('-')!r}",
        )
    return name


def _source(package_path: Path, settings: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    if "pythonModule" not in settings:
        raise SpecError("--module-name is missing", advice=f"name the module to run, such as {package_path.name}.task")
    return package.source_arguments(package_path, settings["pythonModule"], directory)


def _script_arguments(settings: Mapping[str, Any], *, is_local: bool) -> dict[str, Any]:
    """Return the estimator's arguments for those of the script, with the job's directory as the service passes it."""
    words = list(settings.get("args", ()))
    if "jobDir" in settings:
        if any(word.partition("=")[0] == "--job-dir" for word in words):
            raise SpecError("--job-dir is given before and after --", advice="remove the one after --")
        words += ["--job-dir", resolve_location("--job-dir", settings["jobDir"], is_local=is_local)]
    hyperparameters = parse_hyperparameters(words)
    return {"arguments": words} if hyperparameters is None else {"hyperparameters": hyperparameters}


def _output_locations(staging: str | None, *, is_local: bool) -> dict[str, Any]:
    if staging is None:
        return {}
    found = location_uri("--staging-bucket", staging, is_local=is_local).rstrip("/")
    return {"output_path": found, "code_location": f"{found}/packages"}


def _inputs(
    words: tuple[str, ...], found: tuple[machines.MachineGroup, ...], *, is_local: bool
) -> dict[str, TrainingInput] | None:
    """Return the channels; in a cluster the parameter servers do not get them."""
    groups = [each.role for each in found if each.role != "ps"] if len(found) > 1 else []
    channels = {}
    for name, location in parse_pairs("--input", words, "train=s3://bucket/train").items():
        uri = location_uri(f"--input {name}", location, is_local=is_local)
        channels[name] = TrainingInput(uri, instance_groups=groups)
    return channels or None


def _labels(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",") if pair]
    if not all(key and separator for key, separator, _ in pairs):
        raise SpecError(f"--labels is {text!r}", advice="write --labels key=value,other=value")
    return {key: value for key, _, value in pairs}
