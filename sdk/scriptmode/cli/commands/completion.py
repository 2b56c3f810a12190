"""``scriptmode completion SHELL``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    It completes commands, options, files, and the names of this machine's jobs with their hosts and metrics.

    \b
    To install it for all new shells:
      bash  scriptmode completion bash > ~/.local/share/bash-completion/completions/scriptmode
      zsh   scriptmode completion zsh > ~/.zfunc/_scriptmode    (with ~/.zfunc in fpath before compinit)
      fish  scriptmode completion fish > ~/.config/fish/completions/scriptmode.fish

    \b
    Example, for the current shell only:
      eval "$(scriptmode completion bash)"
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.ClickException(
            f"the installed version of click does not support {shell}; upgrade it: pip install -U click"
        )
    root = click.get_current_context().find_root()
    click.echo(completion_class(root.command, {}, "scriptmode", "_SCRIPTMODE_COMPLETE").source())
