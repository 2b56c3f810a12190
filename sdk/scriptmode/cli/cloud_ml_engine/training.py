"""``scriptmode jobs submit training``: Cloud ML Engine's command, for this machine and Amazon SageMaker.

Flags are those of ``gcloud ai-platform jobs submit training`` (``gcloud ml-engine`` before), by its reference in the
Google Cloud SDK; --platform, --input, --role, --image-uri and --max-processes are what Google's service had no need of.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any, Callable

import click

from scriptmode import Estimator, SpecError, TrainingInput
from scriptmode.cli import following, output
from scriptmode.cli.cloud_ml_engine import machines, package
from scriptmode.cli.cloud_ml_engine.config import Settings, parse_settings
from scriptmode.cli.error_reporting import EXIT_CODES_HELP
from scriptmode.cli.error_translation import translate_errors_to_options
from scriptmode.cli.locations import location_uri, resolve_location
from scriptmode.cli.options import PLATFORMS, json_option, set_environment, use_profile
from scriptmode.cli.program_arguments import ProgramCommand, arguments_after_dashes, parse_hyperparameters
from scriptmode.cli.values import parse_pairs

#: Flags that say what a key of TrainingInput says.
_FLAGS = {
    "scale_tier": "scaleTier",
    "master_machine_type": "masterType",
    "worker_machine_type": "workerType",
    "worker_count": "workerCount",
    "parameter_server_machine_type": "parameterServerType",
    "parameter_server_count": "parameterServerCount",
    "module_name": "pythonModule",
    "user_args": "args",
    "job_dir": "jobDir",
    "region": "region",
    "runtime_version": "runtimeVersion",
    "python_version": "pythonVersion",
}
_COUNT = click.IntRange(min=0)
_OPTIONS = (
    click.option("--package-path", type=click.Path(path_type=Path), required=True, help="The package's folder."),
    click.option("--module-name", metavar="NAME", help="The module to run, such as trainer.task."),
    click.option("--staging-bucket", metavar="PLACE", help="Where package and model go: s3://..., or a folder."),
    click.option("--job-dir", metavar="PLACE", help="Given to the program as --job-dir: s3://..., or a folder."),
    click.option("--config", type=click.Path(path_type=Path), help="YAML file with trainingInput."),
    click.option("--scale-tier", metavar="TIER", help="basic, basic-gpu, standard-1, premium-1 or custom."),
    click.option("--master-machine-type", metavar="TYPE", help="With the tier custom."),
    click.option("--worker-machine-type", metavar="TYPE", help="With the tier custom."),
    click.option("--worker-count", type=_COUNT, help="With the tier custom."),
    click.option("--parameter-server-machine-type", metavar="TYPE", help="With the tier custom."),
    click.option("--parameter-server-count", type=_COUNT, help="With the tier custom."),
    click.option("--runtime-version", metavar="VERSION", help="TensorFlow's."),
    click.option("--python-version", metavar="VERSION", help="For an image of AWS's, such as 3.10."),
    click.option("--labels", metavar="KEY=VALUE,...", help="Tags of the job."),
    click.option("--stream-logs", is_flag=True, help="Follow the job; the exit code is then the job's."),
    click.option("--async", "is_async", is_flag=True, hidden=True),  # gcloud's default, as it is here
    click.option("--region", help="Of Amazon SageMaker; this machine has none."),
    click.option("--profile", metavar="NAME", expose_value=False, callback=use_profile, help="Of the AWS settings."),
    click.option("--platform", type=click.Choice(PLATFORMS), default="local", show_default=True),
    click.option("--input", "inputs", metavar="NAME=PLACE", multiple=True, help="A channel; may be repeated."),
    click.option("--role", help="Amazon SageMaker's role for the job."),
    click.option("--image-uri", metavar="URI", help="The training image on Amazon SageMaker."),
    click.option(
        "--max-processes", type=click.IntRange(min=1), help="Of this machine. [default: 4 a core, at least 8]"
    ),
    following.plain_option,
    json_option,
)
#: What says here what arguments of the estimator and of ``fit`` say.
_SAID_BY = {
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
    "job_name": "NAME",
}


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(cls=ProgramCommand, epilog=f"With --stream-logs: {EXIT_CODES_HELP[0].lower()}{EXIT_CODES_HELP[1:]}")
@click.argument("name")
@_options
def training(name: str, config: Path | None, *, stream_logs: bool, **given: Any) -> None:
    """Submit the training job NAME: a package, run by a module's name on the machines of a scale tier.

    What follows -- is the program's.

    \b
    Example:
      scriptmode jobs submit training mnist-1 --package-path trainer --module-name trainer.task \\
        --staging-bucket s3://bucket --config config.yaml -- --max_steps=1000
    """  # noqa: D301 - click's mark for lines to be left as they are
    following.require_view_to_follow(wait=stream_logs, is_plain=given["is_plain"], as_json=given["as_json"])
    given["user_args"] = arguments_after_dashes()
    is_local = given["platform"] == "local"
    settings = parse_settings(config, {key: given[flag] for flag, key in _FLAGS.items()})
    found = machines.resolve_machines(settings, is_local=is_local, max_processes=given["max_processes"])
    if not is_local:
        found = machines.to_sagemaker_types(found, settings.scale_tier)
        _use_region(settings.region)
    with tempfile.TemporaryDirectory() as folder, translate_errors_to_options(_SAID_BY):
        estimator = Estimator(
            **machines.instance_arguments(found),
            **_source(given["package_path"], settings, Path(folder)),
            **_places(given["staging_bucket"], is_local=is_local),
            hyperparameters=_hyperparameters(settings, is_local=is_local),
            role=given["role"],
            image_uri=given["image_uri"],
            framework_version=settings.runtime_version,
            py_version=settings.python_version and "py" + settings.python_version.replace(".", ""),
            max_run=settings.max_run,
            tags={**settings.labels, **_labels(given["labels"])} or None,
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
    """Refuse what Google's names may have, and other names may not."""
    if "_" in name:
        raise SpecError(f"job name {name!r} has underscores; write {re.sub('_+', '-', name).strip('-')!r}")
    return name


def _source(package_path: Path, settings: Settings, folder: Path) -> dict[str, Any]:
    if settings.module is None:
        raise SpecError(f"--module-name is missing; name the module to run, such as {package_path.name}.task")
    return package.source_arguments(package_path, settings.module, folder)


def _hyperparameters(settings: Settings, *, is_local: bool) -> dict[str, str]:
    """Give the program's arguments, and the job's directory as the service gives it."""
    found = parse_hyperparameters(settings.args)
    if settings.job_dir is not None:
        if "job-dir" in found:
            raise SpecError("--job-dir stands before and after --; keep the one before")
        found["job-dir"] = resolve_location("--job-dir", settings.job_dir, is_local=is_local)
    return found


def _places(staging: str | None, *, is_local: bool) -> dict[str, Any]:
    if staging is None:
        return {}
    found = location_uri("--staging-bucket", staging, is_local=is_local).rstrip("/")
    return {"output_path": found, "code_location": f"{found}/packages"}


def _inputs(
    words: tuple[str, ...], found: tuple[machines.MachineGroup, ...], *, is_local: bool
) -> dict[str, TrainingInput] | None:
    """Give the channels; those of a cluster go to who trains, not to the parameter servers."""
    groups = [each.role for each in found if each.role != "ps"] if len(found) > 1 else []
    channels = {}
    for name, where in parse_pairs("--input", words, "train=s3://bucket/train").items():
        found_at = location_uri(f"--input {name}", where, is_local=is_local)
        channels[name] = TrainingInput(found_at, instance_groups=groups)
    return channels or None


def _labels(text: str | None) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in (text or "").split(",") if pair]
    for key, separator, _ in pairs:
        if not (key and separator):
            raise SpecError(f"--labels {text!r} are no labels; write --labels key=value,other=value")
    return {key: value for key, _, value in pairs}


def _use_region(region: str | None) -> None:
    """Have boto3 use a Region of AWS's, for this command."""
    if region is None:
        return
    if re.fullmatch(r"[a-z]+-[a-z]+\d+", region):
        raise SpecError(f"--region {region!r} is a region of Google's; name one of AWS's, such as us-east-1")
    set_environment(click.get_current_context(), {"AWS_DEFAULT_REGION": region, "AWS_REGION": region})
