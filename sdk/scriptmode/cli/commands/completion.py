"""``scriptmode completion SHELL``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what lets SHELL complete verbs, options and the names of this machine's jobs.

    \b
    Put it where the shell looks:
      bash  scriptmode completion bash > ~/.local/share/bash-completion/completions/scriptmode
      zsh   scriptmode completion zsh > ~/.zfunc/_scriptmode    (with ~/.zfunc in fpath before compinit)
      fish  scriptmode completion fish > ~/.config/fish/completions/scriptmode.fish

    \b
    Example, for this one shell:
      eval "$(scriptmode completion bash)"
    """  # noqa: D301 - click's mark for lines to be left as they are
    made = get_completion_class(shell)
    if made is None:
        raise click.ClickException(f"this click cannot complete for {shell}; install a newer one: pip install -U click")
    root = click.get_current_context().find_root()
    click.echo(made(root.command, {}, "scriptmode", "_SCRIPTMODE_COMPLETE").source())
