"""The directive `command-line`: the `--help` output of every command of `scriptmode`."""  # noqa: INP001 - Sphinx's, no package

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx


#: Width in characters that a page shows without scrolling.
WIDTH = 84


def commands(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Yield the full name and the help of each command; a group comes before its commands."""
    context = click.Context(command, info_name=name, terminal_width=WIDTH, **command.context_settings)
    yield name, command.get_help(context)
    if isinstance(command, click.Group):
        for verb in command.list_commands(context):
            below = command.get_command(context, verb)
            if below is not None and not below.hidden:
                yield from commands(below, f"{name} {verb}")


class CommandLine(SphinxDirective):
    """A directive that creates a section for each command."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        from scriptmode_cli import scriptmode

        # The help depends on files that Sphinx does not track: rebuild the page each time.
        self.env.note_reread()
        sections: list[nodes.Node] = []
        for name, text in commands(scriptmode, "scriptmode"):
            section = nodes.section(ids=[nodes.make_id(name)], names=[nodes.fully_normalize_name(name)])
            section += nodes.title(text=name)
            section += nodes.literal_block(text, text, language="text")
            self.state.document.note_explicit_target(section)
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive with Sphinx."""
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True}
