"""``scriptmode serve``."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, NoReturn

import click

from scriptmode.cli import output
from scriptmode.cli.options import json_option
from scriptmode.cli.values import WholeNumber
from scriptmode.serve.request_mapping import HOSTS, HostTable
from scriptmode.serve.server import DEFAULT_HOST, DEFAULT_PORT, Server, Settings, parse_address

if TYPE_CHECKING:
    from types import FrameType


@click.command()
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    default=f"{DEFAULT_HOST}:{DEFAULT_PORT}",
    show_default=True,
    help="Address at which the server listens; port 0 is one that is free.",
)
@click.option(
    "--hosts",
    type=click.Choice(HOSTS),
    default=HOSTS[0],
    show_default=True,
    help="Hosts that stand for SageMaker's instance types.",
)
@click.option(
    "--s3",
    metavar="URL|disk|memory",
    default="disk",
    show_default=True,
    help="Where S3's objects are: the URL of an S3 server, 'disk' (SeaweedFS, below the data directory), or 'memory' "
    "(gone when the server ends).",
)
@click.option("--max-jobs", type=WholeNumber(min=1), metavar="N", help="Refuse a job while N are in progress.")
@click.option("--queue", type=WholeNumber(min=1), metavar="N", help="Let jobs wait while N run.")
@click.option("--rate", type=WholeNumber(min=1), metavar="N", help="Refuse more than N requests of a client a second.")
@json_option
def serve(listen: str, hosts: str, *, s3: str, as_json: bool, **limits: int | None) -> None:
    """Serve SageMaker's training API, whose jobs run on this machine.

    Every AWS client uses the server if the environment variable AWS_ENDPOINT_URL is its URL. The command that sets it
    is printed. A training job is a program of the client's choice: it runs as the user who started the server. Jobs do
    not depend on the server; started again, it has them all.

    \b
    Example:
      scriptmode serve &
      export AWS_ENDPOINT_URL=http://127.0.0.1:4580
      aws sagemaker list-training-jobs
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    host, port = parse_address(listen)
    settings = Settings(host, port, HostTable(hosts), s3=s3, **{name: value or 0 for name, value in limits.items()})
    server = Server(settings, lambda line: output.echo(line, err=True))
    signal.signal(signal.SIGTERM, _exit)
    if as_json:
        output.print_json_line({"url": server.url})
    else:
        output.echo(f"export AWS_ENDPOINT_URL={server.url}")
    server.run()


def _exit(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)
