"""Commands that take a program's own arguments after ``--``."""

from __future__ import annotations

from typing import Any

import click

from scriptmode.cli.group import before_dashes

#: Where a context keeps the words after ``--``.
_WORDS = "scriptmode.words_after_dashes"


class ProgramCommand(click.Command):
    """A command whose words after ``--`` are the program's; a wrong word before says that they come there."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the program's words aside, and read the others."""
        own, ctx.meta[_WORDS] = before_dashes(args)
        try:
            return super().parse_args(ctx, own)
        except click.UsageError as error:
            is_stray = isinstance(error, click.NoSuchOption) or "unexpected extra argument" in error.message
            if is_stray and "--" not in args:
                said = error.format_message().rstrip(".")
                raise click.UsageError(f"{said}; the program's own arguments come after --", ctx) from error
            raise

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Show where the program's words are."""
        return [*super().collect_usage_pieces(ctx), "[-- ARGUMENTS]"]


def words_after_dashes() -> tuple[str, ...]:
    """Give what stood after ``--`` on the running command's line."""
    found: Any = click.get_current_context().meta.get(_WORDS, ())
    return tuple(found)
