"""``scriptmode image build``."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from scriptmode.containers import TENSORFLOW_VERSIONS, build_image
from scriptmode_cli._options.options import json_option
from scriptmode_cli._program import output
from scriptmode_cli._program.group import Group


@click.group(cls=Group)
def image() -> None:
    """Build the training image.

    Jobs in containers of this machine use the built image unless they name another one. Amazon SageMaker needs an image
    in Amazon ECR: ``docker push`` it there.

    \b
    Example:
      scriptmode image build
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap


@image.command()
@click.option(
    "--tensorflow", metavar="VERSION", default=TENSORFLOW_VERSIONS[-1], show_default=True,
    help=f"TensorFlow version in the image: {' or '.join(TENSORFLOW_VERSIONS)}.",
)  # fmt: skip
@click.option("--gpu", is_flag=True, help="Install TensorFlow for GPUs. Needs --base with an image that contains CUDA.")
@click.option(
    "--base", metavar="IMAGE",
    help="Base image: Debian or a derivative such as Ubuntu; for GPUs one with CUDA. [default: Debian 12]",
)  # fmt: skip
@click.option(
    "--refresh", is_flag=True, help="Build the image even if it exists, with the newest base image and system packages."
)
@json_option
def build(*, as_json: bool, **wanted: Any) -> None:
    """Build the training image for a TensorFlow version, unless it exists, and print its name.

    \b
    Example:
      scriptmode image build --tensorflow 2.15.1
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    name = build_image(**wanted, on_line=partial(output.echo, err=True))
    output.print_result({"image": name}, name, as_json=as_json)
