"""``scriptmode stacks JOB``."""

from __future__ import annotations

import click

from scriptmode import TrainingJob
from scriptmode._core.text.terminal_text import escape_unprintable
from scriptmode_cli._options.options import job_options, json_option
from scriptmode_cli._program import output


@click.command()
@job_options
@json_option
def stacks(job: TrainingJob, *, as_json: bool) -> None:
    """Print what the processes of JOB do at this moment, with the stacks of Python.

    JOB runs on this machine, or on machines that see its directory. Each host's launcher tells of every process below
    it: its task, such as worker 0 or rank 3, its command, and where each thread of a Python process is.

    \b
    Example:
      scriptmode stacks --last
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    silent = "no answer: it has no launcher of scriptmode, or does not see the job's directory, as a pod does not"
    answers = dict.fromkeys(job.hosts, silent) | job.platform.stacks(job.name)
    shown = [(host, line) for host, text in answers.items() for line in (text or "no processes").splitlines()]
    lines = [f"{host} | {escape_unprintable(line)}" for host, line in shown]
    output.print_result(answers, "\n".join(lines), as_json=as_json)
