"""``scriptmode scale PROGRAM``."""

from __future__ import annotations

from typing import Any

import click

from scriptmode_cli._options import estimator_options
from scriptmode_cli._options.program_arguments import ProgramCommand
from scriptmode_cli._options.run_options import RunOptions
from scriptmode_cli._program import output
from scriptmode_cli._program.error_reporting import FAILED, translate_errors_to_options

#: The options that stand for arguments of the measurement, and for the one that it sets itself.
_OPTIONS = {"hosts": "--hosts", "instance_count": "--hosts", "layouts": "--layouts", "steps": "--steps"}


@click.command(cls=ProgramCommand)
@estimator_options.estimator_options
@click.option(
    "--hosts", "sizes", metavar="N,N,...", default="1,2,4", show_default=True,
    help="Numbers of hosts, instead of --instance-count.",
)  # fmt: skip
@click.option(
    "--layouts", metavar="KIND,KIND,...", default="",
    help="Distributed training strategies: single (none), parameter-server, multi-worker-mirrored, mpi. "
    "[default: that of --distribution]",
)  # fmt: skip
@click.option(
    "--steps", type=click.IntRange(min=2), metavar="N", default=100, show_default=True,
    help="Step at which each job is stopped.",
)  # fmt: skip
@click.option(
    "--batch-size", type=click.IntRange(min=1), metavar="N",
    help="Number of images in a batch of one trainer. [default: the one that the log names]",
)  # fmt: skip
def scale(sizes: str, layouts: str, *, as_json: bool, **given: Any) -> None:
    """Measure the speed of a training script on several numbers of hosts.

    A job runs for each layout and number of hosts, one after another, and is stopped at a step. The log must name the
    steps: step 7. Another form is defined by a metric: --metric 'step=batch ([0-9]+)'. The first fifth of the steps
    is not measured. Hosts on one machine share its cores; on Slurm the rates are those of the cluster.

    \b
    Example:
      scriptmode scale train.py --hosts 1,2,4 --layouts parameter-server,mpi --steps 100

    \b
    The exit code is 1 if one of the jobs failed or could not be measured.
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    own = {name: given.pop(name) for name in ("steps", "batch_size")}
    options = RunOptions.parse(given)
    options.require_no_name("scale")
    hosts: list[Any] = [int(size) if size.isdecimal() else size for size in _split(sizes)]
    with translate_errors_to_options(estimator_options.OPTION_NAMES):
        estimator = options.estimator()
    with translate_errors_to_options({**estimator_options.OPTION_NAMES, **_OPTIONS}):
        scaling = estimator.scale(options.inputs, hosts=hosts, layouts=_split(layouts), **own)
    output.print_result(scaling.to_dict() if as_json else None, str(scaling), as_json=as_json)
    if any(row.problem for row in scaling.rows):
        raise click.exceptions.Exit(FAILED)


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
