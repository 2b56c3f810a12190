"""Groups of verbs: a group with its help and suggestions, and the main group, which loads each verb on demand."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from scriptmode import ScriptmodeError

#: The exit status of a program that SIGINT ended: 128 + 2.
INTERRUPTED = 130


class Group(click.Group):
    """A group of verbs that prints its help when called without a verb, and suggests a verb for a misspelled one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Print the help if there are no arguments, unless the group does something without a verb."""
        if not args and not ctx.resilient_parsing and not self.invoke_without_command:
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb; raise `click.UsageError` for an unknown one."""
        word = args[0]
        if not ctx.resilient_parsing and not word.startswith("-") and self.get_command(ctx, word) is None:
            from scriptmode._core.text.messages import did_you_mean

            step = did_you_mean(word, self.list_commands(ctx), most=sys.maxsize)
            raise click.UsageError(f"there is no command '{ctx.command_path} {word}'; {step}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs, each with the whole first sentence of its help."""
        sections = self.sections(ctx)
        width = max(len(verb) for verbs in sections.values() for verb in verbs)
        for title, verbs in sections.items():
            with formatter.section(title):
                formatter.write_dl([(verb.ljust(width), text) for verb, text in verbs.items()])

    def sections(self, ctx: click.Context) -> Mapping[str, Mapping[str, str]]:
        """Return the first sentence of each verb's help by verb, by the titles of the help's sections."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return {"Commands": {name: verb.get_short_help_str(sys.maxsize) for name, verb in commands.items() if verb}}


class MainGroup(Group):
    """The ``scriptmode`` command, which lists its verbs without importing them, and reports errors in one line."""

    def __init__(self, *args: Any, sections: Mapping[str, Mapping[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.verbs = {verb: text for verbs in sections.values() for verb, text in verbs.items()}
        self._sections = sections

    def sections(self, ctx: click.Context) -> Mapping[str, Mapping[str, str]]:  # noqa: ARG002 - click's signature
        """Return the table of the verbs, without importing them."""
        return self._sections

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the verbs in the order of the help."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import a verb, and return its command."""
        if cmd_name not in self.verbs:
            return None
        # A module `list` would hide the built-in name.
        name = "list_jobs" if cmd_name == "list" else cmd_name
        command: click.Command = getattr(import_module(f"scriptmode_cli._commands.{name}"), name)
        return command

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's signature
        **extra: Any,
    ) -> Any:
        """Run the command and exit; an error is written to stderr, as JSON with ``--json``.

        Without ``standalone_mode`` errors are raised to the caller, and the process does not exit.
        """
        words = list(sys.argv[1:] if args is None else args)
        if not standalone_mode:
            return super().main(words, prog_name, complete_var, standalone_mode=False, **extra)
        # A file that is opened later would get the descriptor of a closed stream, and the output.
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:
                setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open until the end
        as_json = "--json" in split_at_dashes(words)[0]
        try:
            code = super().main(words, prog_name, complete_var, standalone_mode=False, **extra)
            # A failed write must be reported before the interpreter flushes at exit.
            sys.stdout.flush()
        except (click.Abort, KeyboardInterrupt) as error:
            # An Abort of click's has the interrupt as its cause.
            sys.exit(_report_interrupt(error.__cause__ or error, as_json=as_json))
        except (click.ClickException, ScriptmodeError, OSError) as error:
            from scriptmode_cli._program import error_reporting

            error_reporting.discard_output()
            if isinstance(error, BrokenPipeError):
                # The reader closed the pipe on purpose: there is nothing to report.
                sys.exit(error_reporting.FAILED)
            sys.exit(error_reporting.report_error(error, as_json=as_json))
        sys.exit(code if isinstance(code, int) else 0)


def _report_interrupt(error: BaseException, *, as_json: bool) -> int:
    """Write that Ctrl-C was pressed, as text or as one JSON object; return the exit code."""
    # The job that was being started, and what to do about it.
    job = getattr(error, "job_name", "")
    record = {"error": "Interrupted", "message": str(error) if job else "interrupted", "exit_code": INTERRUPTED}
    # In a line that the shell completes, a message would be in its middle.
    if "_SCRIPTMODE_COMPLETE" in os.environ:
        return INTERRUPTED
    if as_json:
        click.echo(json.dumps({**record, "job": job} if job else record), err=True)
    else:
        click.echo(str(error) if job else "scriptmode: interrupted", err=True)
    return INTERRUPTED


def split_at_dashes(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words before ``--``, which belong to the command, and those after it, which belong to the script."""
    index = list(words).index("--") if "--" in words else len(words)
    return list(words[:index]), list(words[index + 1 :])
