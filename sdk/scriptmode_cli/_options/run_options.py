"""The job that ``run`` and ``plan`` start: an estimator, its inputs and its name, from a job file and options."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from scriptmode import Estimator, SpecError, TrainingInput
from scriptmode._core.spec.distribution import NAMES
from scriptmode._core.spec.metric_definitions import PRESETS
from scriptmode._core.text.messages import did_you_mean
from scriptmode_cli._options import job_file, locations
from scriptmode_cli._options.estimator_options import OPTION_NAMES, SINGLE_OPTIONS
from scriptmode_cli._options.program_arguments import parse_hyperparameters
from scriptmode_cli._options.values import parse_number_or_text, parse_pair, parse_pairs

_LOCAL_PROCESS = "local_process"
_JOB_FILES = (".toml", ".yaml", ".yml")
#: Arguments whose values are locations that the job writes to.
_LOCATIONS = ("output_path", "code_location", "checkpoint_s3_uri")


class RunOptions(NamedTuple):
    """The estimator's arguments, ``fit``'s inputs and job name, and the option that stands for each argument."""

    arguments: Mapping[str, Any]
    inputs: Mapping[str, Any] | None
    job_name: str | None
    options_by_argument: Mapping[str, str]

    @classmethod
    def parse(cls, given: Mapping[str, Any], words: tuple[str, ...]) -> RunOptions:
        """Parse the values of the options and the words after ``--``. Options override the job file.

        Raises `SpecError` for values that cannot make a job.
        """
        path: Path | None = given["file"]
        from_file = {} if path is None else _read_file(path, has_source_dir=given["source_dir"] is not None)
        in_file = frozenset(from_file)
        inputs, name = from_file.pop("inputs", None), from_file.pop("job_name", None)
        options = _parse_options(given)
        arguments = {**from_file, **options}
        _require_program(arguments, path)
        arguments.update(_distribution_update(arguments, given))
        arguments.update(_mapping_updates(arguments, given, words))
        if "instance_groups" not in arguments:
            arguments.setdefault("instance_type", _LOCAL_PROCESS)
        groups = arguments.get("instance_groups") or ()
        types = [str(group.instance_type) for group in groups] or [str(arguments.get("instance_type"))]
        is_local = not any(instance_type.startswith("ml.") for instance_type in types)
        arguments.update(platform_arguments(given, is_local=is_local))
        for argument in _LOCATIONS:
            if isinstance(arguments.get(argument), str):
                base = None if path is None or argument in options else path.parent
                where = _option(argument) if base is None else f"{path}: {argument}"
                arguments[argument] = locations.location_uri(where, arguments[argument], is_local=is_local, base=base)
        replaced = parse_pairs("--input", given["inputs"], "train=s3://bucket/train")
        channels = {}
        if path is not None and inputs is not None:
            channels = job_file.parse_channels(path, inputs, is_local=is_local, replaced=replaced)
        for channel, location in replaced.items():
            channels[channel] = locations.existing_location_uri(f"--input {channel}", location, is_local=is_local)
        channels.update(_sharded(channels, given["shards"]))
        overridden = {argument for argument in in_file if argument in options or given.get(argument)}
        return cls(
            arguments,
            channels or None,
            given["job_name"] or name,
            {
                argument: str(path) if argument in in_file else _option(argument)
                for argument in (*job_file.estimator_arguments(), *OPTION_NAMES)
                if argument not in overridden
            },
        )

    def require_no_name(self, command: str) -> None:
        """Raise `SpecError` for the name of one job, where a command starts several."""
        if self.job_name is not None:
            what = f"{command} starts several jobs, but --job-name {self.job_name!r} is the name of one"
            raise SpecError(what, advice="leave --job-name out")

    def estimator(self) -> Estimator:
        """Return the estimator; raises its `SpecError`."""
        return Estimator(**self.arguments)


def _sharded(channels: Mapping[str, Any], names: Sequence[str]) -> dict[str, TrainingInput]:
    """Return the channels of which each host gets a part; raise `SpecError` for one that the job does not have."""
    if unknown := next((name for name in names if not isinstance(channels.get(name), (str, TrainingInput))), ""):
        raise SpecError(f"--shard {unknown!r} is no channel of objects", advice=did_you_mean(unknown, channels))
    sources = {name: channels[name] for name in names}
    given = {name: TrainingInput(source) if isinstance(source, str) else source for name, source in sources.items()}
    return {name: replace(source, distribution="ShardedByS3Key") for name, source in given.items()}


def platform_arguments(given: Mapping[str, Any], *, is_local: bool) -> Mapping[str, Any]:
    """Return the platform if options have settings of `LocalPlatform`; raise `SpecError` for a job elsewhere."""
    from scriptmode_local import LocalPlatform

    settings = {name: given[name] for name in ("queue", "force") if given.get(name)}
    if settings and not is_local:
        option = f"--{next(iter(settings))}"
        raise SpecError(f"{option} is for jobs of this machine", advice=f"leave {option} out")
    return {"platform": LocalPlatform(**settings)} if settings else {}


def _require_program(arguments: Mapping[str, Any], path: Path | None) -> None:
    """Raise `click.UsageError` where neither a program, nor an image with one, nor a job file is given."""
    script = str(arguments.get("entry_point", ""))
    if path is None and script.endswith(_JOB_FILES):
        raise click.UsageError(f"{script} is not a program; if it is a job file, write --file {shlex.quote(script)}")
    if path is None and not {"entry_point", "image_uri"} & arguments.keys():
        raise click.UsageError(
            "there is no PROGRAM; name one, or a job file: --file job.toml", click.get_current_context()
        )


def _option(argument: str) -> str:
    return OPTION_NAMES.get(argument, f"--set {argument}=...")


def _read_file(path: Path, *, has_source_dir: bool) -> dict[str, Any]:
    """Read a job file's arguments, with relative paths resolved from its directory.

    A script within a source directory stays relative to that directory.
    """
    arguments, base = job_file.read_job_file(path), path.parent
    if isinstance(arguments.get("distribution"), str):
        arguments["distribution"] = _parse_distribution(f"{path}: distribution", arguments["distribution"])
    if "instance_groups" in arguments:
        arguments["instance_groups"] = job_file.parse_instance_groups(f"{path}:", arguments["instance_groups"])
    if "git_config" in arguments or "://" in str(arguments.get("source_dir", "")):
        return arguments
    if "source_dir" in arguments:
        arguments["source_dir"] = str(base / arguments["source_dir"])
    elif "entry_point" in arguments and not has_source_dir:
        arguments["entry_point"] = str(base / arguments["entry_point"])
    if "dependencies" in arguments:
        arguments["dependencies"] = [str(base / str(path)) for path in arguments["dependencies"]]
    return arguments


def _parse_options(given: Mapping[str, Any]) -> dict[str, object]:
    """Return the arguments that options replace as a whole; raise `SpecError` for an argument that is given twice."""
    arguments = {argument: given[argument] for argument in SINGLE_OPTIONS if given[argument] is not None}
    if given["program"] is not None:
        arguments["entry_point"] = given["program"]
    if given["dependencies"]:
        arguments["dependencies"] = list(given["dependencies"])
    if given["distribution"] is not None:
        arguments["distribution"] = _parse_distribution("--distribution", given["distribution"])
    others: dict[str, object] = {}
    for text in given["others"]:
        name, value = _parse_setting(text)
        if name in arguments:
            raise SpecError(f"--set {name} and {_option(name)} both set {name}", advice="remove one of them")
        if name in others:
            raise SpecError(f"--set {name} is given twice", advice="remove one of them")
        others[name] = value
    return {**arguments, **others}


def _distribution_update(arguments: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, object]:
    """Return the distribution with the options that configure it, whether it is from the file or from an option."""
    options = {name: given[name] for name in ("processes_per_host", "coordinator", "evaluator", "ps") if given[name]}
    distributions = arguments.get("distribution") or {}
    if not options or not isinstance(distributions, dict):
        # The estimator rejects a value that is not a distribution.
        return {}
    enabled = {kind: entry for kind, entry in distributions.items() if isinstance(entry, dict) and entry.get("enabled")}
    if not enabled:
        option = f"--{next(iter(options)).replace('_', '-')}"
        raise SpecError(f"{option} configures a distribution, but none is enabled", advice="add --distribution")
    return {"distribution": {**distributions, **{kind: {**entry, **options} for kind, entry in enabled.items()}}}


def _parse_setting(text: str) -> tuple[str, Any]:
    name, word = parse_pair("--set", text, "max_wait=7200")
    if name in job_file.JOB_KEYS:
        raise SpecError(f"--set {name}: {name} is not an argument of the estimator", advice=f"use {_option(name)}")
    types = job_file.estimator_arguments().get(name, ())
    value: Any = word
    # What is not JSON is a text.
    with suppress(ValueError, RecursionError):
        value = json.loads(word)
    if str in types and not job_file.is_accepted_type(types, value):
        # An argument that accepts strings gets the word as it was typed: base_job_name=2024 is "2024".
        value = word
    job_file.validate_argument("--set", name, value)
    if name == "distribution" and isinstance(value, str):
        value = _parse_distribution("--set distribution", value)
    if name == "instance_groups":
        value = job_file.parse_instance_groups("--set", value)
    return name, value


def _mapping_updates(arguments: Mapping[str, Any], given: Mapping[str, Any], words: Sequence[str]) -> dict[str, object]:
    """Return the arguments that are mappings, with the entries of the options added or replaced by name.

    Words after ``--`` that hyperparameters cannot represent are the script's ``arguments``.
    """
    after_dashes = parse_hyperparameters(words)
    updates: dict[str, object] = {"arguments": list(words)} if after_dashes is None else {}
    for argument, entries in (
        ("hyperparameters", _hyperparameters(given, after_dashes or {})),
        ("environment", parse_pairs("--env", given["environment"], "NAME=value")),
        ("tags", parse_pairs("--tag", given["tags"], "team=vision")),
    ):
        if entries:
            updates[argument] = {**_to_mapping(argument, arguments.get(argument) or {}, "Key", "Value"), **entries}
    presets = [text for text in given["metrics"] if text in PRESETS]
    others = [text for text in given["metrics"] if text not in PRESETS]
    metrics = {
        **dict(pair for preset in presets for pair in PRESETS[preset]),
        **parse_pairs("--metric", others, "'loss=loss=([0-9.]+)', or --metric keras"),
    }
    if metrics:
        argument = "metric_definitions"
        before = arguments.get(argument) or {}
        if isinstance(before, str) and before in PRESETS:
            before = dict(PRESETS[before])
        merged = {**_to_mapping(argument, before, "Name", "Regex"), **metrics}
        updates[argument] = [{"Name": name, "Regex": regex} for name, regex in merged.items()]
    return updates


def _to_mapping(argument: str, value: Any, key: str, content: str) -> dict[str, object]:
    """Return a list of the service's key and value pairs as a mapping; a mapping is returned unchanged."""
    if isinstance(value, dict):
        return value
    try:
        return {pair[key]: pair[content] for pair in value}
    except (TypeError, KeyError) as error:
        form = f"list of {{{key!r}: ..., {content!r}: ...}}"
        raise SpecError(f"{argument} is {value!r}, which is not a {form}", "correct the file, or --set") from error


def _hyperparameters(given: Mapping[str, Any], after_dashes: Mapping[str, str]) -> dict[str, object]:
    options = parse_pairs("-p", given["hyperparameters"], "epochs=5")
    for name in after_dashes:
        if name in options:
            raise SpecError(f"{name} is given by --hyperparameter and after --", advice="remove one of them")
    return {name: parse_number_or_text(value) for name, value in {**options, **after_dashes}.items()}


def _parse_distribution(where: str, name: str) -> dict[str, object]:
    kind = NAMES.get(name.replace("_", "-"))
    if kind is None:
        raise SpecError(f"{where} is {name!r}", advice=did_you_mean(name, list(NAMES)[:3]))
    return {kind: {"enabled": True}}
