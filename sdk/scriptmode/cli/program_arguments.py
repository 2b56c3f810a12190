"""Commands that take a program's own arguments after ``--``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from scriptmode import SpecError
from scriptmode.cli.group import split_at_dashes

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Where a context keeps the words after ``--``.
_WORDS = "scriptmode.words_after_dashes"
#: Where it keeps all of them.
_TYPED = "scriptmode.words"


#: A value may be a negative number, which no option is.
_NUMBER = re.compile(r"-\.?\d")


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


def parse_hyperparameters(words: Sequence[str]) -> dict[str, str]:
    """Read a program's arguments as names and values, which reach it again as ``--name value``.

    Values stay the texts they are. Raises `SpecError` for what no hyperparameter can carry: a flag without a value, a
    word without a name, a name given twice.
    """
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        option = re.fullmatch(r"(?s)--?(?P<name>[^-=][^=]*)(?P<given>=(?P<value>.*))?", word)
        if option is None or _NUMBER.match(word):
            raise SpecError(
                f"argument {word!r} after -- has no name, and a training job's arguments have names and values; "
                "write --name=value"
            )
        name, value = option["name"], option["value"]
        _check_name(word, name)
        if option["given"] is None:
            if not rest or (rest[0].startswith("-") and not _NUMBER.match(rest[0])):
                raise SpecError(
                    f"argument {word!r} after -- has no value, and a training job's arguments have names and values; "
                    f"let the program take {word}=true"
                )
            value = rest.pop(0)
        if name in found:
            raise SpecError(
                f"argument --{name} after -- is given twice; a training job's arguments have one value each"
            )
        found[name] = value
    return found


def _check_name(word: str, name: str) -> None:
    dashes = min(len(name), 2)
    if not word.startswith("-" * dashes) or (dashes == 1 and word.startswith("--")):
        raise SpecError(
            f"argument {word!r} after -- would reach the program as {'-' * dashes}{name}: names of one letter have one "
            "dash, longer ones two; write it so"
        )
