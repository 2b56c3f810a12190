"""Texts of click's errors of usage, each with the next step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from scriptmode.core.text.messages import did_you_mean, suggest_similar

if TYPE_CHECKING:
    from collections.abc import Container

#: The most options that are listed where none is similar.
_MOST_LISTED = 12


def usage_text(error: click.UsageError) -> str:
    """Return the text of an error of usage; click's own text where that has a next step."""
    context = error.ctx
    if isinstance(error, click.NoSuchOption) and context:
        step = _suggest_option(error.option_name, context) or _list_options(context)
        return _with_step(f"no such option {error.option_name!r}", step)
    if isinstance(error, click.MissingParameter) and isinstance(error.param, click.Parameter) and context:
        is_option = isinstance(error.param, click.Option)
        name = error.param.opts[-1] if is_option else error.param.make_metavar(context).strip("[]")
        return _with_step(f"{name} is missing", _suggest_example(context) or _list_choices(error.param))
    if isinstance(error, click.BadParameter) and (step := _suggest_choice(error)):
        return step
    if isinstance(error, click.BadOptionUsage) and "requires an argument" in error.message:
        return f"{error.option_name} needs a value; write {error.option_name} VALUE"
    text = error.format_message()
    if (extra := _extra(text)) and context:
        return _with_step(extra, _suggest_example(context))
    # Click's messages begin with a capital letter, ours do not; names of arguments stay in capitals.
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def stray_text(error: click.UsageError, context: click.Context) -> str:
    """Return the text of an error about a word that may belong after ``--``."""
    step = "write arguments of the script after --"
    if not isinstance(error, click.NoSuchOption):
        return _with_step(_extra(error.format_message()), step)
    argument = error.option_name.lstrip("-").replace("-", "_")
    if "--set" in (name for each in _options(context) for name in each.opts) and argument in _estimator_arguments():
        return _with_step(f"no such option {error.option_name!r}", f"write --set {argument}=VALUE")
    similar = _suggest_option(error.option_name, context)
    return _with_step(f"no such option {error.option_name!r}", f"{similar} Otherwise {step}" if similar else step)


def _estimator_arguments() -> Container[str]:
    from scriptmode.cli import job_file

    return job_file.estimator_arguments()


def _extra(text: str) -> str:
    """Return which words are too many, if a text of click is about those."""
    found = re.search(r"unexpected extra argument(s?) \((.*)\)", text)
    return f"unexpected argument{found[1]} {found[2]!r}" if found else ""


def _with_step(text: str, step: str) -> str:
    return f"{text}; {step}" if step else text


def _suggest_option(word: str, context: click.Context) -> str:
    """Return the option that was probably meant, as ``did you mean '--x'?``; "" where none is similar."""
    # The dashes, which all of them have, would make any two similar.
    stems = {name.lstrip("-"): name for each in _options(context) for name in (*each.opts, *each.secondary_opts)}
    similar = suggest_similar(word.lstrip("-"), [stem for stem in stems if len(stem) > 1])
    return re.sub("'(.*)'", lambda found: repr(stems[found[1]]), similar)


def _list_options(context: click.Context) -> str:
    names = sorted(each.opts[-1] for each in _options(context))
    return f"use one of {', '.join(names)}" if len(names) <= _MOST_LISTED else ""


def _suggest_choice(error: click.BadParameter) -> str:
    """Return the text for a word that is none of a parameter's choices; "" for another error."""
    found = re.match("'(.*)' is not one of ", error.message)
    if found is None or error.param is None or not isinstance(error.param.type, click.Choice):
        return ""
    name = error.param.opts[-1] if isinstance(error.param, click.Option) else error.param.human_readable_name
    return f"{name} is {found[1]!r}; {did_you_mean(found[1], error.param.type.choices)}"


def _list_choices(parameter: click.Parameter) -> str:
    return f"write one of {', '.join(parameter.type.choices)}" if isinstance(parameter.type, click.Choice) else ""


def _options(context: click.Context) -> list[click.Option]:
    return [each for each in context.command.get_params(context) if isinstance(each, click.Option)]


def _suggest_example(context: click.Context) -> str:
    """Return the first example of the command's help as advice; "" where it has none."""
    # Of several lines the first ones end with a backslash.
    found = re.search(r"Example:\n\s*(scriptmode (?:.*\\\n)*.*)", context.command.help or "")
    return f"write for example: {' '.join(found[1].replace(chr(92), '').split())}" if found else ""
