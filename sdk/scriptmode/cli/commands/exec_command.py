"""``scriptmode exec JOB -- COMMAND``."""

from __future__ import annotations

import click

from scriptmode.cli import completers
from scriptmode.cli.options import last_option, selected_name
from scriptmode.cli.program_arguments import ProgramCommand, arguments_after_dashes
from scriptmode.core.platforms.registry import local_platform


class _HostCommand(ProgramCommand):
    after_dashes = "-- COMMAND"
    stray_step = "write COMMAND after --"


@click.command("exec", cls=_HostCommand)
@click.argument("job", required=False, shell_complete=completers.complete_running_job)
@last_option
@click.option(
    "--host",
    metavar="NAME",
    shell_complete=completers.complete_host,
    help="Host to run COMMAND on, such as algo-2. [default: algo-1]",
)
def exec_command(job: str | None, *, last: bool, host: str | None) -> int:
    """Run COMMAND in the environment of a running host of this machine.

    COMMAND has the variables of the training script (SM_*, TF_CONFIG), its working directory and its interpreter. If
    the host is a container, COMMAND runs in it, without input.

    Exit code: that of COMMAND; 127 if the host has no such program; 1 if JOB does not run.

    \b
    Example:
      scriptmode exec mnist-1 --host algo-2 -- python -c 'import os; print(os.environ["SM_HOSTS"])'
      scriptmode exec --last -- nvidia-smi
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    context = click.get_current_context()
    command = arguments_after_dashes()
    if not command or not command[0]:
        raise click.UsageError("COMMAND is missing; write it after --, as in scriptmode exec JOB -- ls -l", context)
    if host == "":
        raise click.UsageError("--host is ''; name a host, such as algo-2, or leave the option out", context)
    name = selected_name(job, last=last, platform="local")
    return local_platform().execute(name, command, host=host)
