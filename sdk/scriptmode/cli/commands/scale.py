"""``scriptmode scale PROGRAM``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from scriptmode.cli import completers, estimator_options, output
from scriptmode.cli.error_reporting import FAILED, translate_errors_to_options
from scriptmode.cli.program_arguments import ProgramCommand, arguments_after_dashes
from scriptmode.cli.run_options import RunOptions
from scriptmode.cli.structured_files import parse_toml, read_text
from scriptmode.cli.values import WholeNumber
from scriptmode.core.machine.yaml_files import parse_yaml

_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in ("hosts", "layouts", "steps", "prices", "price_as")}


@click.command(cls=ProgramCommand)
@estimator_options.estimator_options
@click.option(
    "--hosts",
    "sizes",
    metavar="N,N,...",
    default="1,2,4",
    show_default=True,
    help="Numbers of hosts, instead of --instance-count.",
)
@click.option(
    "--layouts", metavar="KIND,KIND,...", default="",
    help="Distributed training strategies: single (none), parameter-server, multi-worker-mirrored, mpi. "
    "[default: that of --distribution]",
)  # fmt: skip
@click.option(
    "--steps", type=WholeNumber(min=2), metavar="N", default=100, show_default=True,
    help="Step at which each job is stopped.",
)  # fmt: skip
@click.option(
    "--batch-size", type=WholeNumber(min=1), metavar="N",
    help="Number of images in a batch of one trainer. [default: the one that the log names]",
)  # fmt: skip
@click.option(
    "--prices", "price_file", type=click.Path(path_type=Path), metavar="FILE",
    help="TOML or JSON file with the price of a host an hour by instance type.",
)  # fmt: skip
@click.option(
    "--price-as", metavar="TYPE",
    help="Instance type whose price counts. One of SageMaker, such as ml.m5.xlarge, has AWS's price in your Region "
    "without --prices. [default: --instance-type]",
)  # fmt: skip
@click.option(
    "--plot", metavar="FILE", shell_complete=completers.complete_file,
    help="Draw the rates by the number of hosts into FILE, such as scale.svg. Needs Matplotlib.",
)  # fmt: skip
def scale(sizes: str, layouts: str, price_file: Path | None, plot: str | None, *, as_json: bool, **given: Any) -> None:
    """Measure the speed and the cost of a training script on several numbers of hosts.

    A job runs for each layout and number of hosts, one after another, and is stopped at a step. The log must name the
    steps: step 7. Another form is defined by a metric: --metric 'step=batch ([0-9]+)'. The first fifth of the steps
    is not measured. Hosts on one machine share its cores; on Slurm the rates are those of the cluster.

    \b
    Example:
      scriptmode scale train.py --hosts 1,2,4 --layouts parameter-server,mpi --steps 100
      scriptmode scale train.py --input train=data --prices prices.toml --price-as ml.p3.2xlarge

    \b
    The exit code is 1 if one of the jobs failed or could not be measured.
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    own = {name: given.pop(name) for name in ("steps", "batch_size", "price_as")}
    options = RunOptions.parse(given, arguments_after_dashes())
    options.require_no_name("scale")
    hosts: list[Any] = [int(each) if each.isdecimal() else each for each in _split(sizes)]
    if plot is not None:
        output.check_figure_path("--plot", plot)
    with translate_errors_to_options({**options.options_by_argument, **_OPTIONS}):
        found = options.estimator().scale(
            options.inputs,
            hosts=hosts,
            layouts=_split(layouts),
            prices=None if price_file is None else _read_prices(price_file),
            **own,
        )
    output.print_result(found.to_dict() if as_json else None, str(found), as_json=as_json)
    if plot is not None:
        output.save_figure("--plot", plot, found.plot())
    if any(row.problem for row in found.rows):
        raise click.exceptions.Exit(FAILED)


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _read_prices(path: Path) -> Any:
    content = read_text("--prices", path, "TOML or JSON")
    # Every JSON document is YAML.
    return parse_toml(path, content) if path.suffix == ".toml" else parse_yaml(str(path), content)
