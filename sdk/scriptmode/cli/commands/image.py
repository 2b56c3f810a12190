"""``scriptmode image build`` and ``scriptmode image push``."""

from __future__ import annotations

from typing import Any, Callable

import click

from scriptmode.cli import completers, output
from scriptmode.cli.group import Group
from scriptmode.cli.options import account_options, json_option
from scriptmode.containers import TENSORFLOW_VERSIONS, build_image, default_image, push_image, refresh_image

_OPTIONS = (
    click.option(
        "--tensorflow",
        metavar="VERSION",
        shell_complete=completers.complete_choice(*TENSORFLOW_VERSIONS),
        default=TENSORFLOW_VERSIONS[-1],
        show_default=True,
        help=f"One of {', '.join(TENSORFLOW_VERSIONS)}.",
    ),
    click.option("--gpu", is_flag=True, help="With TensorFlow for GPUs; needs --base."),
    click.option("--base", metavar="IMAGE", help="What it is made from: Debian or its kin, with CUDA for GPUs."),
    click.option(
        "--development-base",
        metavar="IMAGE",
        help="What it is built in, with CUDA's headers. [default: beside the base]",
    ),
)


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.group(cls=Group)
def image() -> None:
    """Build the image that jobs train in, and push it to where SageMaker finds it.

    \b
    Example:
      scriptmode image build
      scriptmode image push team/training
    """  # noqa: D301 - click's mark for lines to be left as they are


@image.command()
@_options
@click.option("--tag", metavar="NAME", help="One more name for the image.")
@click.option("--refresh", is_flag=True, help="Build anew, with the newest base and Debian's newest packages.")
@json_option
def build(tag: str | None, *, refresh: bool, as_json: bool, **wanted: Any) -> None:
    """Build the training image for a TensorFlow version, unless it is there, and print its name.

    \b
    Example:
      scriptmode image build --tensorflow 2.15.1 --tag training:1
    """  # noqa: D301 - click's mark for lines to be left as they are
    if refresh:
        refresh_image(**wanted, on_line=_show)
    _print("image", build_image(**wanted, tag=tag, on_line=_show), as_json=as_json)


@image.command()
@click.argument("repository")
@_options
@click.option("--image", "name", metavar="NAME", help="Another image than the one that these options build.")
@account_options
@json_option
def push(repository: str, name: str | None, *, as_json: bool, **wanted: Any) -> None:
    """Push the training image to REPOSITORY and print its URI, which is what image_uri takes.

    Without a registry before it, REPOSITORY is one of Amazon ECR in your account and Region, and is created there.

    \b
    Example:
      scriptmode image push team/training --tensorflow 2.15.1
    """  # noqa: D301 - click's mark for lines to be left as they are
    _print("image_uri", push_image(repository, name or default_image(**wanted), on_line=_show), as_json=as_json)


def _print(what: str, name: str, *, as_json: bool) -> None:
    if as_json:
        output.print_json({what: name})
    else:
        output.echo(name)


def _show(line: str) -> None:
    output.echo(line, err=True)
