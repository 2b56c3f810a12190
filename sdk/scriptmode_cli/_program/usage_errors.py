"""What a usage error says: click's own words, and the next step."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

import click

from scriptmode._core.spec.estimator_arguments import EstimatorArguments

#: The key of a context's ``meta`` for the words after ``--``, of a command that passes them to the script.
AFTER_DASHES = "scriptmode.arguments_after_dashes"
#: What other tools call options, and what does the same here, where the command has that option.
_OPTIONS = (
    (("-n", "--hosts", "--nodes", "--workers", "--num-workers"), "--instance-count N"),
    (("-n", "--lines"), "--tail N"),
    (("--gpus", "--gpu"), "--instance-type of hosts with GPUs, such as local_gpu or ml.g5.xlarge"),
    (("--partition",), "--instance-type slurm:PARTITION"),
    (("-d", "--detach", "--background"), "--no-wait"),
    (("--spot",), "--set use_spot_instances=true --set max_wait=SECONDS"),
    (("--platform",), "--instance-type TYPE, which selects the platform"),
    (("--timeout", "--time"), "--max-run SECONDS"),
    (("--data", "--dataset"), "--input train=PATH"),
    (("--dist", "--strategy"), "--distribution KIND"),
    (("--port", "--host"), "--listen ADDRESS:PORT"),
)
#: Arguments of the estimator that --set does not take.
_WITHOUT_TEXT = {"entry_point", "platform", "sagemaker_session"}


def usage_message(error: click.ClickException) -> str:
    """Return the text of click's error, with what the command takes where the text does not say it."""
    text, ctx = error.format_message(), getattr(error, "ctx", None)
    if isinstance(kind := getattr(getattr(error, "param", None), "type", None), click.IntRange):
        return f"{text.rstrip('.').replace('integer range', 'integer')}; write a whole number of at least {kind.min}"
    if ctx and isinstance(error, click.NoSuchOption):
        return f"{error.message.rstrip('.')}; {_instead_of_option(error.option_name, ctx)}"
    if ctx and "unexpected extra argument" in text:
        return f"{text}; {'write arguments of the script after --' if AFTER_DASHES in ctx.meta else _usage(ctx)}"
    return text


def _instead_of_option(option: str, ctx: click.Context) -> str:
    takes_arguments, own = AFTER_DASHES in ctx.meta, _options(ctx.command)
    others = [text for words, text in _OPTIONS if option in words and text.partition(" ")[0] in own]
    if others:
        return f"write {others[0]}{', and arguments of the script after --' if takes_arguments else ''}"
    near, name = _near(option, own), option.lstrip("-").replace("-", "_")
    if takes_arguments and not near and name in {*EstimatorArguments._fields} - _WITHOUT_TEXT:
        return f"write --set {name}=VALUE, or {option} after -- for the script"
    if near:
        return f"did you mean {near[0]!r}?{' Write arguments of the script after --' if takes_arguments else ''}"
    if takes_arguments:
        example = f"{ctx.command_path} PROGRAM -- {option} ..."
        return f"write arguments of the script after --: {example}, and those of the estimator with --set"
    return _usage(ctx)


def _usage(ctx: click.Context) -> str:
    parameter = ["[-p NAME=VALUE]"] if "-p" in _options(ctx.command) else []
    return f"write {' '.join([ctx.command_path, *ctx.command.collect_usage_pieces(ctx), *parameter])}"


def _options(command: click.Command) -> list[str]:
    return [name for option in command.params for name in option.opts + option.secondary_opts if name.startswith("-")]


def _near(word: str, known: Collection[str]) -> list[str]:
    """Return the similar known words with the same first character, the most similar one first."""
    stem, stems = word.strip("-"), {name.strip("-"): name for name in known}
    return [stems[other] for other in get_close_matches(stem, stems) if other[0] == stem[0]]
