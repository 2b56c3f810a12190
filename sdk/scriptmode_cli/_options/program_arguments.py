"""Arguments of the script, after ``--``: commands that take them, and their form as hyperparameters."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from scriptmode_cli._program.group import split_at_dashes
from scriptmode_cli._program.usage_errors import AFTER_DASHES

#: A word like ``-1`` or ``-.5`` is a value, not an option.
_NUMBER = re.compile(r"-\.?\d")


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
