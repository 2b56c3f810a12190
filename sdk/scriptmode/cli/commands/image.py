"""``scriptmode image build`` and ``scriptmode image push``."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from scriptmode.cli import completers, output
from scriptmode.cli.group import Group
from scriptmode.cli.options import account_options, add_options, json_option
from scriptmode.containers import TENSORFLOW_VERSIONS, build_image, default_image, push_image, refresh_image

_show = partial(output.echo, err=True)
_image_options = add_options(
    (
        click.option(
            "--tensorflow",
            metavar="VERSION",
            shell_complete=completers.complete_choice(*TENSORFLOW_VERSIONS),
            default=TENSORFLOW_VERSIONS[-1],
            show_default=True,
            help=f"TensorFlow version in the image: {' or '.join(TENSORFLOW_VERSIONS)}.",
        ),
        click.option(
            "--gpu", is_flag=True, help="Install TensorFlow for GPUs. Needs --base with an image that contains CUDA."
        ),
        click.option(
            "--base",
            metavar="IMAGE",
            help="Base image: Debian or a derivative such as Ubuntu; for GPUs one with CUDA. [default: Debian 12]",
        ),
        click.option(
            "--development-base",
            metavar="IMAGE",
            help="Image that packages are built in, which contains CUDA's headers. [default: the -devel- variant "
            "of --base]",
        ),
    )
)


@click.group(cls=Group)
def image() -> None:
    """Build the training image, and push it to a registry.

    Jobs in containers of this machine use the built image unless they name another one. Amazon SageMaker needs an image
    in Amazon ECR.

    \b
    Example:
      scriptmode image build
      scriptmode image push team/training
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap


@image.command()
@_image_options
@click.option(
    "--tag", metavar="NAME", help="Additional name for the image. It is printed instead of the image's own name."
)
@click.option(
    "--refresh", is_flag=True, help="Build the image even if it exists, with the newest base image and system packages."
)
@json_option
def build(tag: str | None, *, refresh: bool, as_json: bool, **wanted: Any) -> None:
    """Build the training image for a TensorFlow version, unless it exists, and print its name.

    \b
    Example:
      scriptmode image build --tensorflow 2.15.1 --tag training:1
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    if refresh:
        refresh_image(**wanted, on_line=_show)
    name = build_image(**wanted, tag=tag, on_line=_show)
    output.print_result({"image": name}, name, as_json=as_json)


@image.command()
@click.argument("repository")
@_image_options
@click.option(
    "--image", "name", metavar="NAME", help="Image to push. [default: the image that the other options build]"
)
@account_options
@json_option
def push(repository: str, name: str | None, *, as_json: bool, **wanted: Any) -> None:
    """Push the training image to REPOSITORY, and print its URI for --image-uri.

    A REPOSITORY without a registry's host name is a repository of Amazon ECR in your account and Region. It is created
    if it does not exist.

    \b
    Example:
      scriptmode image push team/training --tensorflow 2.15.1
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    uri = push_image(repository, name or default_image(**wanted), on_line=_show)
    output.print_result({"image_uri": uri}, uri, as_json=as_json)
