"""``scriptmode image build`` and ``scriptmode image push``."""

from __future__ import annotations

from typing import Any, Callable

import click

from scriptmode.containers import TENSORFLOW_VERSIONS, build_image, default_image, push_image

_OPTIONS = (
    click.option(
        "--tensorflow",
        metavar="VERSION",
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


@click.group()
def image() -> None:
    """Build the image that jobs train in, and push it to where SageMaker finds it."""


@image.command()
@_options
@click.option("--tag", metavar="NAME", help="One more name for the image.")
def build(tag: str | None, **wanted: Any) -> None:
    """Build the training image for a TensorFlow version, unless it is there, and print its name.

    \b
    Example:
      scriptmode image build --tensorflow 2.15.1 --tag training:1
    """  # noqa: D301 - click's mark for lines to be left as they are
    click.echo(build_image(**wanted, tag=tag, on_line=_show))


@image.command()
@click.argument("repository")
@_options
@click.option("--image", "name", metavar="NAME", help="Another image than the one that these options build.")
def push(repository: str, name: str | None, **wanted: Any) -> None:
    """Push the training image to REPOSITORY and print its URI, which is what image_uri takes.

    Without a registry before it, REPOSITORY is one of Amazon ECR in your account and Region, and is created there.

    \b
    Example:
      scriptmode image push team/training --tensorflow 2.15.1
    """  # noqa: D301 - click's mark for lines to be left as they are
    click.echo(push_image(repository, name or default_image(**wanted), on_line=_show))


def _show(line: str) -> None:
    click.echo(line, err=True)
