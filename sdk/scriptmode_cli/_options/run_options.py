"""The job that ``run`` and ``plan`` start: an estimator, its inputs and its name, from the options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from scriptmode import Estimator, SpecError, TrainingInput
from scriptmode._core.spec import arguments as parsers
from scriptmode._core.spec.distribution import NAMES
from scriptmode._core.spec.metric_definitions import PRESETS
from scriptmode._core.text.messages import did_you_mean
from scriptmode_cli._options.estimator_options import OPTION_NAMES
from scriptmode_cli._options.set_option import estimator_arguments, parse_setting
from scriptmode_cli._options.values import location_uri, parse_number_or_text, parse_pair, parse_pairs
from scriptmode_cli._program.error_reporting import translate_errors_to_options
from scriptmode_cli._program.usage_errors import AFTER_DASHES

#: Arguments whose values are locations that the job writes to.
_LOCATIONS = ("output_path", "code_location", "checkpoint_s3_uri")
_METRIC_EXAMPLE = "'loss=loss=([0-9.]+)', or --metric keras"
#: A word like ``-1`` or ``-.5`` is a value, not an option.
_NUMBER = re.compile(r"-\.?\d")
#: Arguments to which options add entries by name.
_MAPPINGS = ("hyperparameters", "environment", "tags", "metric_definitions")


class RunOptions(NamedTuple):
    """The estimator's arguments, and ``fit``'s inputs and job name."""

    arguments: Mapping[str, Any]
    inputs: Mapping[str, str | TrainingInput] | None
    job_name: str | None

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> RunOptions:
        """Parse the values of the options and the words after ``--``; raise `SpecError` for what cannot make a job."""
        arguments = _parse_options(given)
        if not {"entry_point", "image_uri"} & arguments.keys():
            raise click.UsageError("there is no PROGRAM; name one, before --")
        arguments.update(_distribution_update(arguments.get("distribution") or {}, given))
        arguments.update(_mapping_updates(arguments, given, click.get_current_context().meta.get(AFTER_DASHES) or ()))
        hosts = _default_hosts(given["sbatch"], arguments)
        if "instance_groups" not in arguments:
            arguments = {**hosts, **arguments}
        groups = arguments.get("instance_groups") or ()
        types = [str(group.instance_type) for group in groups] or [str(arguments.get("instance_type"))]
        is_local = not any(instance_type.startswith("ml.") for instance_type in types)
        arguments.update(_platform_arguments(given, is_local=is_local and "platform" not in arguments))
        for argument in _LOCATIONS:
            if argument in arguments:
                arguments[argument] = location_uri(OPTION_NAMES[argument], arguments[argument], is_local=is_local)
        channels = {
            channel: location_uri(f"--input {channel}", location, is_local=is_local, exists=True)
            for channel, location in parse_pairs("--input", given["inputs"], "train=PATH").items()
        }
        if unknown := next((name for name in given["shards"] if name not in channels), ""):
            step = did_you_mean(unknown, channels) or f"add --input {unknown}=PATH"
            raise SpecError(f"--shard {unknown!r} is no channel", step)
        sharded = {name: TrainingInput(channels[name], distribution="ShardedByS3Key") for name in given["shards"]}
        return cls(arguments, {**channels, **sharded} or None, given["job_name"])

    def estimator(self) -> Estimator:
        """Return the estimator; raises its `SpecError`."""
        return Estimator(**self.arguments)


def _default_hosts(script: str | None, arguments: dict[str, Any]) -> dict[str, object]:
    """Return the hosts of a job that names none; with a batch script, those of its header, and set its platform."""
    if script is None:
        return {"instance_type": "local_process"}
    from scriptmode import Slurm

    if (kind := str(arguments.get("instance_type", "slurm"))).partition(":")[0] != "slurm":
        raise SpecError(f"--sbatch is for nodes of a Slurm cluster, not for {kind!r}", "leave one of them out")
    with translate_errors_to_options({"script": "--sbatch"}):
        arguments["platform"] = site = Slurm.from_sbatch(script)
    return {"instance_type": "slurm", "instance_count": site.header_nodes}


def _platform_arguments(given: Mapping[str, Any], *, is_local: bool) -> Mapping[str, Any]:
    """Return the platform if options have settings of `LocalPlatform`; raise `SpecError` for a job elsewhere."""
    from scriptmode_local import LocalPlatform

    settings = {name: given[name] for name in ("queue", "force") if given.get(name)}
    if settings and not is_local:
        option = f"--{next(iter(settings))}"
        raise SpecError(f"{option} is for jobs of this machine", advice=f"leave {option} out")
    return {"platform": LocalPlatform(**settings)} if settings else {}


def _parse_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that options replace as a whole; raise `SpecError` for an argument that is given twice."""
    arguments = {
        argument: given[argument]
        for argument in estimator_arguments()
        if argument not in _MAPPINGS and given.get(argument) not in (None, ())
    }
    others: dict[str, Any] = {}
    for text in given["others"]:
        name, word = parse_pair("--set", text, "max_wait=7200")
        value = parse_setting(name, word)
        if name in arguments:
            raise SpecError(f"--set {name} and {OPTION_NAMES[name]} both set {name}", advice="remove one of them")
        if name in others:
            raise SpecError(f"--set {name} is given twice", advice="remove one of them")
        others[name] = value
    arguments.update(others)
    if isinstance(chosen := arguments.get("distribution"), str):
        if (kind := NAMES.get(chosen.replace("_", "-"))) is None:
            raise SpecError(f"--distribution is {chosen!r}", advice=did_you_mean(chosen, list(NAMES)))
        arguments["distribution"] = {kind: {"enabled": True}}
    return arguments


def _distribution_update(distributions: Any, given: Mapping[str, Any]) -> dict[str, object]:
    """Return the distribution with the options that configure it, whether it is from its option or from --set."""
    options = {name: given[name] for name in ("processes_per_host", "coordinator", "evaluator", "ps") if given[name]}
    if not options or not isinstance(distributions, dict):
        # The estimator rejects a value that is not a distribution.
        return {}
    enabled = {kind: entry for kind, entry in distributions.items() if isinstance(entry, dict) and entry.get("enabled")}
    if not enabled:
        what = f"{OPTION_NAMES[next(iter(options))]} configures a distribution, but none is enabled"
        raise SpecError(what, advice="add --distribution")
    return {"distribution": {**distributions, **{kind: {**entry, **options} for kind, entry in enabled.items()}}}


def _mapping_updates(arguments: Mapping[str, Any], given: Mapping[str, Any], words: Sequence[str]) -> dict[str, object]:
    """Return the arguments that are mappings, with the entries of the options added or replaced by name.

    Words after ``--`` that hyperparameters cannot represent are the script's ``arguments``.
    """
    after_dashes = parse_hyperparameters(words)
    updates: dict[str, object] = {"arguments": list(words)} if after_dashes is None else {}
    if hyperparameters := _hyperparameters(given["hyperparameters"], after_dashes or {}):
        updates["hyperparameters"] = {**arguments.get("hyperparameters", {}), **hyperparameters}
    if environment := parse_pairs("--env", given["environment"], "NAME=value"):
        updates["environment"] = {**arguments.get("environment", {}), **environment}
    if tags := parse_pairs("--tag", given["tags"], "team=vision"):
        updates["tags"] = {**dict(parsers.tags(arguments.get("tags"))), **tags}
    texts = given["metric_definitions"]
    others = parse_pairs("--metric", [text for text in texts if text not in PRESETS], _METRIC_EXAMPLE)
    if metrics := {**dict(pair for text in texts for pair in PRESETS.get(text, ())), **others}:
        merged = {**dict(parsers.metric_definitions(arguments.get("metric_definitions"))), **metrics}
        updates["metric_definitions"] = [{"Name": name, "Regex": regex} for name, regex in merged.items()]
    return updates


def _hyperparameters(options: Sequence[str], after_dashes: Mapping[str, str]) -> dict[str, object]:
    pairs = parse_pairs("-p", options, "epochs=5")
    for name in after_dashes:
        if name in pairs:
            raise SpecError(f"{name} is given by --hyperparameter and after --", advice="remove one of them")
    return {name: parse_number_or_text(value) for name, value in {**pairs, **after_dashes}.items()}


def parse_hyperparameters(words: Sequence[str]) -> dict[str, str] | None:
    """Parse a script's arguments as hyperparameters, with the options ``--name value`` and ``-n value``, as texts.

    Returns None for words that would not reach the script as they are: a flag without a value, a value without an
    option, an option that occurs twice, one dash before a long name. They are the job's ``arguments``.
    """
    hyperparameters: dict[str, str] = {}
    rest = list(words)
    while rest:
        option = re.fullmatch(r"(?s)(?P<dashes>--?)(?P<name>[^-=][^=]*)(?P<given>=(?P<value>.*))?", rest[0])
        if option is None or _NUMBER.match(rest.pop(0)):
            return None
        name, value = option["name"], option["value"]
        if option["given"] is None:
            if not rest or (rest[0].startswith("-") and not _NUMBER.match(rest[0])):
                return None
            value = rest.pop(0)
        if name in hyperparameters or len(option["dashes"]) != min(len(name), 2):
            return None
        hyperparameters[name] = value
    return hyperparameters
