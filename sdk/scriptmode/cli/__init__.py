"""The ``scriptmode`` command.

Only `main`, which the console script calls, is public. Each verb is a module of `scriptmode.cli.commands`, or of
`scriptmode.cli.cloud_ml_engine` for ``scriptmode jobs``; the modules beside this file serve several verbs.
"""

from __future__ import annotations

import click

from scriptmode.cli.group import MainGroup, Verb

#: In the order in which a newcomer needs them. Each line is how the verb's own help begins.
VERBS = {
    "run": Verb(
        "scriptmode.cli.commands.run:run", "Start a training job from options or a file, and follow it to its end."
    ),
    "plan": Verb("scriptmode.cli.commands.plan:plan", "Print what a training job would be and do, and start nothing."),
    "list": Verb("scriptmode.cli.commands.list_jobs:list_jobs", "List training jobs, newest first."),
    "describe": Verb("scriptmode.cli.commands.describe:describe", "Print what is known of JOB."),
    "logs": Verb("scriptmode.cli.commands.logs:logs", "Print JOB's log, each line with its host."),
    "attach": Verb(
        "scriptmode.cli.commands.attach:attach",
        "Come back to JOB: print what is known of it and, while it runs, follow it to its end.",
    ),
    "stop": Verb("scriptmode.cli.commands.stop:stop", "Ask each JOB to stop."),
    "rm": Verb("scriptmode.cli.commands.rm:rm", "Delete each JOB of this machine, with its log and what it left."),
    "rerun": Verb(
        "scriptmode.cli.commands.rerun:rerun", "Start JOB once more under a new name, and follow it to its end."
    ),
    "metrics": Verb(
        "scriptmode.cli.commands.metrics:metrics", "Print what the metric definitions of JOB found in its log."
    ),
    "model": Verb("scriptmode.cli.commands.model:model", "Fetch what a job has trained."),
    "image": Verb("scriptmode.cli.commands.image:image", "Build the image that jobs train in, and push it."),
    "jobs": Verb(
        "scriptmode.cli.cloud_ml_engine.jobs:jobs", "Submit training jobs as on Cloud ML Engine, and look after them."
    ),
    "doctor": Verb(
        "scriptmode.cli.commands.doctor:doctor",
        "See what this machine has for training jobs, and what to do about what is missing.",
    ),
    "completion": Verb(
        "scriptmode.cli.commands.completion:completion",
        "Print what lets SHELL complete verbs, options and the names of this machine's jobs.",
    ),
}


@click.group(
    cls=MainGroup, verbs=VERBS, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="scriptmode")
def scriptmode() -> None:
    """Start training jobs on this machine and on Amazon SageMaker, and look after them.

    \b
    Example:
      scriptmode run train.py --instance-count 2 --input train=data -- --epochs 5
      scriptmode logs -f --last

    \b
    JOB is a job's name; --last stands for the newest. What each verb does: scriptmode VERB --help.
    """  # noqa: D301 - click's mark for lines to be left as they are


def main() -> None:
    """Run the command; an error of ours is one line and an exit code."""
    scriptmode()
