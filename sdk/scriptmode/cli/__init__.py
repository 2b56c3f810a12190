"""The ``scriptmode`` command.

Only `main`, which ``scriptmode.__main__`` calls, is public. Each verb is a module of `scriptmode.cli.commands`, or of
`scriptmode.cli.cloud_ml_engine` for ``scriptmode jobs``; the modules beside this file serve several verbs.
"""

from __future__ import annotations

import sys
import warnings
from io import TextIOWrapper

import click

from scriptmode.cli.group import MainGroup

#: The verbs by the sections of the help, each with the first sentence of its own help. `MainGroup` finds their modules.
SECTIONS = {
    "Start a job": {
        "init": "Write a training script, its test, a job file and a little data to start from.",
        "plan": "Show what a training job would run, without starting it.",
        "run": "Start a training job, and follow its log until it ends.",
        "rehearse": "Find out what faults do to a training job, by letting them happen to it on this machine.",
        "scale": "Measure the speed of a training script on several numbers of hosts.",
        "rerun": "Start a copy of JOB under a new name, and follow its log until it ends.",
        "resume": "Start the jobs of this machine again that were interrupted, such as by a restart of the machine.",
    },
    "Follow jobs": {
        "list": "List training jobs, newest first.",
        "describe": "Print a summary of JOB.",
        "logs": "Print the log of JOB, each line with the name of its host.",
        "attach": "Print a summary of JOB and, while it runs, follow its log.",
        "top": "Show the resources that the hosts of each JOB of this machine use, by default of all running jobs.",
        "exec": "Run COMMAND in the environment of a running host of this machine.",
    },
    "Results": {
        "metrics": "Print the values of the metrics that were found in the log of JOB.",
        "model": "Download the model that a job trained.",
        "cp": "Copy a file or directory of JOB to TARGET, by default into the current directory.",
    },
    "End and delete jobs": {
        "stop": "Stop each JOB.",
        "rm": "Delete each JOB of this machine, including its log and its results.",
        "prune": (
            "Delete old jobs of this machine that ended, sources that no job needs, and cached "
            "downloads and environments."
        ),
    },
    "Set up": {
        "doctor": "Check whether training jobs can run, and print how to fix problems.",
        "image": "Build the training image, and push it to a registry.",
        "serve": "Serve SageMaker's training API, whose jobs run on this machine.",
        "kubernetes": "Print the manifests with which scriptmode serve runs in a Kubernetes cluster.",
        "completion": "Print the completion script of a shell.",
    },
    "From other tools": {
        "migrate": "Show what has to change in programs of the SageMaker SDK v2 or v1.",
        "jobs": "Submit and manage training jobs with the commands of Cloud ML Engine.",
    },
}
#: Words of other tools for the same verbs; the help does not list them.
SYNONYMS = {
    **dict.fromkeys(("submit", "launch", "start", "train"), "run"),
    **dict.fromkeys(("ls", "ps"), "list"),
    **dict.fromkeys(("inspect", "show", "status"), "describe"),
    **dict.fromkeys(("log", "tail"), "logs"),
    **dict.fromkeys(("cancel", "kill"), "stop"),
    "delete": "rm",
}
#: Verbs of other tools that scriptmode does not have, and what to do instead.
INSTEAD = {
    "deploy": "serving is not part of scriptmode; to get the trained model, run scriptmode model download JOB",
    "ssh": "to run a command on a running host, run scriptmode exec JOB COMMAND",
    "tensorboard": "in Python, scriptmode.TrainingJob.attach(NAME).tensorboard() starts it",
    **dict.fromkeys(("tune", "tuner"), "hyperparameters are tuned in Python, by scriptmode.Tuner(...).fit(...)"),
    **dict.fromkeys(("ui", "dashboard", "web"), "scriptmode serve shows jobs in a browser, at its URL"),
}


@click.group(
    cls=MainGroup,
    sections=SECTIONS,
    synonyms=SYNONYMS,
    instead=INSTEAD,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="scriptmode")
def scriptmode() -> None:
    """Start and manage training jobs on this machine, on a Slurm cluster and on Amazon SageMaker.

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
