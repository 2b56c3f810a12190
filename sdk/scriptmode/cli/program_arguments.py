"""Commands that take a program's own arguments after ``--``."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import CompletionItem

from scriptmode.cli.group import split_at_dashes

#: Where a context keeps the words after ``--``.
_WORDS = "scriptmode.words_after_dashes"
#: Where it keeps all of them.
_TYPED = "scriptmode.words"


class ProgramCommand(click.Command):
    """A command whose words after ``--`` are the program's; a wrong word before says that they come there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the program's words aside, and read the others."""
        ctx.meta[_TYPED] = list(args)
        own, ctx.meta[_WORDS] = split_at_dashes(args)
        try:
            return super().parse_args(ctx, own)
        except click.UsageError as error:
            is_stray = isinstance(error, click.NoSuchOption) or "unexpected extra argument" in error.message
            if is_stray and "--" not in args:
                said = error.format_message().rstrip(".")
                raise click.UsageError(f"{said}; the program's own arguments come after --", ctx) from error
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Have files completed where a program's words are, and after ``--input NAME=``, which bash takes apart."""
        words = ctx.meta.get(_TYPED, ())
        if "--" in words or (words[-1:] == ["="] and words[-3:-2] == ["--input"]):
            return [CompletionItem(incomplete, type="file")]
        return super().shell_complete(ctx, incomplete)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Show where the program's words are."""
        return [*super().collect_usage_pieces(ctx), "[-- ARGUMENTS]"]


def arguments_after_dashes() -> tuple[str, ...]:
    """Give what stood after ``--`` on the running command's line."""
    found: Any = click.get_current_context().meta.get(_WORDS, ())
    return tuple(found)
