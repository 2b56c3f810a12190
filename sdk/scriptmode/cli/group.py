"""Groups of verbs: one that loads a verb when it is called, and the whole program with its errors and exit codes."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from scriptmode import ScriptmodeError
from scriptmode.messages import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: As a shell says of a program that SIGINT ended.
_INTERRUPTED = 130


class Verb(NamedTuple):
    """Where a verb is, as ``module:name``, and what it does: the first sentence of its help."""

    place: str
    help: str


class Group(click.Group):
    """A group of verbs: alone it prints its help, and a verb that it does not have is told with the nearest one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Print the help where nothing is said."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; raise `click.UsageError` for another word."""
        word = args[0]
        if not ctx.resilient_parsing and not word.startswith("-") and self.get_command(ctx, word) is None:
            raise click.UsageError(
                f"there is no {ctx.command_path} {word!r}{did_you_mean(word, self.list_commands(ctx))}", ctx
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs, each with a whole sentence of what it does."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.sentences(ctx).items()))

    def sentences(self, ctx: click.Context) -> dict[str, str]:
        """Give by verb the first sentence of its help."""
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return {name: verb.get_short_help_str(sys.maxsize) for name, verb in found.items() if verb is not None}


class MainGroup(Group):
    """The whole command: it knows its verbs without loading them, and ends with one line and an exit code."""

    def __init__(self, *args: Any, verbs: Mapping[str, Verb], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own form
        """Give the verbs, in the order in which a newcomer needs them."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        """Load a verb."""
        if cmd_name not in self.verbs:
            return None
        module, _, name = self.verbs[cmd_name].place.partition(":")
        found: click.Command = getattr(import_module(module), name)
        return found

    def sentences(self, ctx: click.Context) -> dict[str, str]:  # noqa: ARG002 - likewise
        """Give what each verb does, without loading it."""
        return {name: verb.help for name, verb in self.verbs.items()}

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's own form
        **extra: Any,
    ) -> Any:
        """Run the command and exit; an error is told on stderr, as JSON where the command was asked for it.

        Without ``standalone_mode`` errors are the caller's and nothing exits.
        """
        words = list(sys.argv[1:] if args is None else args)
        if not standalone_mode:
            return super().main(words, prog_name, complete_var, standalone_mode=False, **extra)
        _open_closed_streams()
        try:
            code = super().main(words, prog_name, complete_var, standalone_mode=False, **extra)
            # What cannot be written is to be told before the interpreter tries it.
            sys.stdout.flush()
        except click.Abort:
            sys.exit(_INTERRUPTED)
        except (click.ClickException, ScriptmodeError, OSError) as error:
            from scriptmode.cli import error_reporting

            error_reporting.discard_output()
            if isinstance(error, BrokenPipeError):
                # Whoever read has left, and knows.
                sys.exit(error_reporting.FAILED)
            sys.exit(error_reporting.report_error(error, as_json="--json" in split_at_dashes(words)[0]))
        sys.exit(code if isinstance(code, int) else 0)


def _open_closed_streams() -> None:
    """Let what is written where nothing is open go nowhere; what is opened later must not come to stand there."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - as long as the program


def split_at_dashes(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Give the words before ``--``, which are the command's, and those after it, which are the program's."""
    if "--" not in words:
        return list(words), []
    place = list(words).index("--")
    return list(words[:place]), list(words[place + 1 :])
