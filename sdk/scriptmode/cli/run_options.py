"""What ``run`` and ``plan`` were asked for: the file first, the options over it, as an estimator and its inputs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scriptmode import Estimator, SpecError
from scriptmode.cli import job_file, locations
from scriptmode.cli.estimator_options import OPTION_NAMES, SINGLE_OPTIONS
from scriptmode.cli.program_arguments import parse_hyperparameters
from scriptmode.cli.values import parse_number_or_text, parse_pair, parse_pairs
from scriptmode.messages import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LOCAL_PROCESS = "local_process"
_KINDS = {
    "mpi": "mpi",
    "parameter-server": "parameter_server",
    "multi-worker-mirrored": "multi_worker_mirrored_strategy",
    "multi-worker-mirrored-strategy": "multi_worker_mirrored_strategy",
}
#: Arguments that are places of what jobs write.
_PLACES = ("output_path", "code_location", "checkpoint_s3_uri")


@dataclass(frozen=True)
class RunOptions:
    """An estimator's arguments, ``fit``'s inputs and job name, and by argument the option that says it."""

    arguments: Mapping[str, Any]
    inputs: Mapping[str, Any] | None
    job_name: str | None
    flags: Mapping[str, str]

    def estimator(self) -> Estimator:
        """Make the estimator; raises its `SpecError`."""
        return Estimator(**self.arguments)


def parse_run_options(given: Mapping[str, Any], words: tuple[str, ...]) -> RunOptions:
    """Read the command's options and the words after ``--``; raise `SpecError` for what makes no job."""
    path: Path | None = given["file"]
    said = {} if path is None else _of_file(path, has_source=given["source_dir"] is not None)
    inputs, name = said.pop("inputs", None), said.pop("job_name", None)
    options = _of_options(given)
    arguments = {**said, **options}
    arguments.update(_spread(arguments, given))
    arguments.update(_laid_over(arguments, given, words))
    if "instance_type" not in arguments and "instance_groups" not in arguments:
        if given["platform"] == "sagemaker":
            raise SpecError("--instance-type is missing; Amazon SageMaker needs one, such as ml.m5.xlarge")
        arguments["instance_type"] = _LOCAL_PROCESS
    is_local = _is_local(arguments, given["platform"])
    for argument in _PLACES:
        if isinstance(arguments.get(argument), str):
            base = None if path is None or argument in options else path.parent
            flag = _flag(argument) if base is None else f"{path}: {argument}"
            arguments[argument] = locations.location_uri(flag, arguments[argument], is_local=is_local, base=base)
    found = {} if path is None or inputs is None else job_file.parse_channels(path, inputs, is_local=is_local)
    for channel, place in parse_pairs("--input", given["inputs"], "train=s3://bucket/train").items():
        found[channel] = locations.existing_location_uri(f"--input {channel}", place, is_local=is_local)
    flags = {
        argument: _flag(argument)
        for argument in (*job_file.estimator_arguments(), *OPTION_NAMES)
        if argument not in said
    }
    return RunOptions(arguments, found or None, given["job_name"] or name, flags)


def _flag(argument: str) -> str:
    return OPTION_NAMES.get(argument, f"--set {argument}=...")


def _of_file(path: Path, *, has_source: bool) -> dict[str, Any]:
    """Read the file's arguments, with paths from its own folder on; a script in a source folder is named in it."""
    said, base = job_file.read_job_file(path), path.parent
    if isinstance(said.get("distribution"), str):
        said["distribution"] = _distribution(f"{path}: distribution", said["distribution"])
    if "instance_groups" in said:
        said["instance_groups"] = job_file.parse_instance_groups(f"{path}: instance_groups", said["instance_groups"])
    if "git_config" in said or "://" in str(said.get("source_dir", "")):
        return said
    if "source_dir" in said:
        said["source_dir"] = str(base / said["source_dir"])
    elif "entry_point" in said and not has_source:
        said["entry_point"] = str(base / said["entry_point"])
    if "dependencies" in said:
        said["dependencies"] = [str(base / each) for each in said["dependencies"]]
    return said


def _of_options(given: Mapping[str, Any]) -> dict[str, Any]:
    found = {argument: given[argument] for argument in SINGLE_OPTIONS if given[argument] is not None}
    if given["program"] is not None:
        found["entry_point"] = given["program"]
    if given["dependencies"]:
        found["dependencies"] = list(given["dependencies"])
    if given["distribution"] is not None:
        found["distribution"] = _distribution("--distribution", given["distribution"])
    others: dict[str, Any] = {}
    for text in given["others"]:
        name, value = _setting(text)
        if name in found:
            raise SpecError(f"--set {name} and {_flag(name)} both say {name}; keep one")
        if name in others:
            raise SpecError(f"--set {name} is there twice; keep one")
        others[name] = value
    return {**found, **others}


def _spread(arguments: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Lay what the options say of a distribution over the one that there is, whoever named it."""
    options = {
        "processes_per_host": given["processes_per_host"],
        "coordinator": given["coordinator"] or None,
        "evaluator": given["evaluator"] or None,
    }
    options = {name: value for name, value in options.items() if value is not None}
    kinds = arguments.get("distribution") or {}
    if not options or not isinstance(kinds, dict):
        # What is no distribution at all the estimator refuses.
        return {}
    enabled = {kind: said for kind, said in kinds.items() if isinstance(said, dict) and said.get("enabled")}
    if not enabled:
        flag = f"--{next(iter(options)).replace('_', '-')}"
        raise SpecError(f"{flag} says how a distribution is done, and there is none; add --distribution")
    return {"distribution": {**kinds, **{kind: {**said, **options} for kind, said in enabled.items()}}}


def _setting(text: str) -> tuple[str, Any]:
    name, word = parse_pair("--set", text, "max_wait=7200")
    if name in job_file.JOB_KEYS:
        raise SpecError(f"--set {name}: {name} is no argument of the estimator; say {_flag(name)}")
    kinds = job_file.estimator_arguments().get(name, ())
    value: Any = word
    try:
        value = json.loads(word)
    except RecursionError as error:
        raise SpecError(f"--set {name} has values too deep within one another; make it flatter") from error
    except ValueError as error:
        if kinds and not {"str", "object"} & set(kinds):
            raise SpecError(f"--set {name} is {word!r}, which is no JSON ({error}); write a JSON value") from error
    if "str" in kinds and not job_file.is_accepted_type(kinds, value):
        # A text that is spelled as another value is spelled.
        value = word
    job_file.validate_argument("--set", name, value)
    if name == "distribution" and isinstance(value, str):
        value = _distribution("--set distribution", value)
    if name == "instance_groups":
        value = job_file.parse_instance_groups("--set instance_groups", value)
    return name, value


def _laid_over(said: Mapping[str, Any], given: Mapping[str, Any], words: tuple[str, ...]) -> dict[str, Any]:
    """Give the arguments that have names and values: each name of the options beside those said, or over them."""
    found: dict[str, Any] = {}
    for argument, option in (
        ("hyperparameters", _hyperparameters(given, words)),
        ("environment", parse_pairs("--env", given["environment"], "NAME=value")),
        ("tags", parse_pairs("--tag", given["tags"], "team=vision")),
    ):
        if option:
            found[argument] = {**_named(argument, said.get(argument) or {}, "Key", "Value"), **option}
    metrics = parse_pairs("--metric", given["metrics"], "'loss=loss=([0-9.]+)'")
    if metrics:
        all_of_them = {**_named("metric_definitions", said.get("metric_definitions") or {}, "Name", "Regex"), **metrics}
        found["metric_definitions"] = [{"Name": name, "Regex": regex} for name, regex in all_of_them.items()]
    return found


def _named(argument: str, value: Any, key: str, content: str) -> dict[str, Any]:
    """Give a list of the service's pairs as a dict; a dict is one already."""
    if isinstance(value, dict):
        return value
    try:
        return {each[key]: each[content] for each in value}
    except (TypeError, KeyError) as error:
        wanted = f"list of {{{key!r}: ..., {content!r}: ...}}"
        raise SpecError(f"{argument} is {value!r}, which is no {wanted}; correct the file, or --set") from error


def _hyperparameters(given: Mapping[str, Any], words: tuple[str, ...]) -> dict[str, Any]:
    options = parse_pairs("-p", given["hyperparameters"], "epochs=5")
    after = parse_hyperparameters(words)
    for name in after:
        if name in options:
            raise SpecError(f"{name} is given by --hyperparameter and after --; keep one")
    return {name: parse_number_or_text(value) for name, value in {**options, **after}.items()}


def _distribution(where: str, name: str) -> dict[str, Any]:
    kind = _KINDS.get(name.replace("_", "-"))
    if kind is None:
        raise SpecError(f"{where} is {name!r}{did_you_mean(name, list(_KINDS)[:3])}")
    return {kind: {"enabled": True}}


def _is_local(arguments: Mapping[str, Any], platform: str | None) -> bool:
    groups = arguments.get("instance_groups") or ()
    types = [str(group.instance_type) for group in groups] or [str(arguments.get("instance_type"))]
    is_local = not any(each.startswith("ml.") for each in types)
    if platform is not None and is_local != (platform == "local"):
        other = "runs on this machine" if is_local else "is Amazon SageMaker's"
        raise SpecError(
            f"--platform is {platform!r}, but the instance type {types[0]!r} {other}; correct --instance-type, "
            "or leave --platform out"
        )
    return is_local
