"""The ``scriptmode`` command.

Only `main`, which ``scriptmode.__main__`` calls, is public. Each verb is a module of `scriptmode_cli._commands`; the
modules of the other packages serve several verbs.
"""

from __future__ import annotations

import sys
import warnings
from io import TextIOWrapper

import click

from scriptmode_cli._program.group import MainGroup

#: The verbs by the sections of the help, each with the first sentence of its own help. `MainGroup` finds their modules.
SECTIONS = {
    "Start a job": {
        "plan": "Show what a training job would run, without starting it.",
        "run": "Start a training job, and follow its log until it ends.",
        "rerun": "Start a copy of JOB under a new name, and follow its log until it ends.",
    },
    "Follow jobs": {
        "list": "List training jobs, newest first.",
        "describe": "Print a summary of JOB.",
        "logs": "Print the log of JOB, each line with the name of its host.",
        "stacks": "Print what the processes of JOB do at this moment, with the stacks of Python.",
    },
    "Results": {
        "metrics": "Print the values of the metrics that were found in the log of JOB.",
        "model": "Download the model that a job trained.",
    },
    "End and delete jobs": {
        "stop": "Stop each JOB.",
        "rm": "Delete each JOB of this machine, including its log and its results.",
    },
    "Set up": {
        "doctor": "Check whether training jobs can run, and print how to fix problems.",
        "horovod": "Install Horovod, which the package index does not have for a current TensorFlow.",
        "image": "Build the training image.",
        "serve": "Serve SageMaker's training API, whose jobs run on this machine.",
    },
}


@click.group(
    cls=MainGroup, sections=SECTIONS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="scriptmode")
def scriptmode() -> None:
    """Start and manage training jobs on this machine, on Slurm or Kubernetes, and on Amazon SageMaker.

    \b
    Example:
      scriptmode run train.py --instance-count 2 --input train=data -- --epochs 5
      scriptmode logs -f --last

    JOB is the name of a training job; --last selects the newest job instead. For the help of one command, run
    scriptmode COMMAND --help.
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap


def main() -> None:
    """Run the command, and exit; an error or a warning of scriptmode is printed as one line."""
    warnings.formatwarning = lambda message, *_, **__: f"Warning: {message}\n"
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        # Bytes in paths that are not UTF-8 are printed as they are.
        sys.stdout.reconfigure(errors="surrogateescape")
    scriptmode()
