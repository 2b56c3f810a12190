"""``scriptmode serve``, ``scriptmode serve key`` and ``scriptmode serve manifests``."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import click

from scriptmode._core.machine.entry_points import entry_points
from scriptmode._core.spec import instance_types
from scriptmode_cli._options.options import force_option, json_option
from scriptmode_cli._options.values import parse_pairs
from scriptmode_cli._program import output
from scriptmode_cli._program.group import Group
from scriptmode_serve._http.access_keys import AccessKeys
from scriptmode_serve._http.configuration import parse_configuration, parse_toml
from scriptmode_serve._http.server import DEFAULT_HOST, DEFAULT_PORT, Server, Settings, parse_address
from scriptmode_serve._operations.quotas import parse_quotas
from scriptmode_serve._operations.request_mapping import HostTable, require_hosts

#: The group of entry points of verbs that run ``scriptmode serve`` elsewhere.
_VERBS = "scriptmode.serve"


def _report(line: str) -> None:
    # A full disk below the log changes no answer.
    with suppress(OSError):
        output.echo(line, err=True)


class _ServeGroup(Group):
    """A group whose verbs are also those of engines."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs, with those of engines, which `get_command` imports."""
        return [*super().list_commands(ctx), *entry_points(_VERBS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb, also one of an engine."""
        own = super().get_command(ctx, cmd_name)
        point = None if own else entry_points(_VERBS).get(cmd_name)
        return point.load() if point else own


@click.group(cls=_ServeGroup, invoke_without_command=True)
@click.option(
    "--listen", metavar="ADDRESS:PORT", default=f"{DEFAULT_HOST}:{DEFAULT_PORT}", show_default=True,
    help="Address at which the server listens; port 0 is one that is free. Other machines need an access key.",
)  # fmt: skip
@click.option(
    "--hosts", metavar="|".join(instance_types.local_forms()),
    help=f"Hosts that stand for SageMaker's instance types. [default: {HostTable.hosts}]",
)  # fmt: skip
@click.option(
    "--config", type=click.File("rb"), metavar="FILE",
    help="TOML file with 'hosts', and the tables 'instance_types' and 'images'.",
)  # fmt: skip
@click.option(
    "--s3", metavar="URL|disk|memory", default="disk", show_default=True,
    help="Where S3's objects are: the URL of an S3 server, 'disk' (SeaweedFS, below the data directory), or 'memory' "
    "(gone when the server ends).",
)  # fmt: skip
@click.option(
    "--allow", "allowed", multiple=True, metavar="DIRECTORY",
    type=click.Path(exists=True, file_okay=False, readable=False),
    help="Directory of this machine that requests may name, by file:// URIs or as the path of a source; may be "
    "repeated. [default: none]",
)  # fmt: skip
@click.option(
    "--queue", type=click.IntRange(min=1), metavar="N",
    help="Let jobs wait while N run. [default: while the machine has no room for their processes]",
)  # fmt: skip
@click.option(
    "--quota", "quotas", multiple=True, metavar="TYPE=N",
    help="Refuse jobs with which more than N instances of a type would be in use; may be repeated. [default: none]",
)  # fmt: skip
@force_option
@json_option
@click.pass_context
def serve(ctx: click.Context, /, *, listen: str, as_json: bool, **options: Any) -> None:
    """Serve SageMaker's training API, whose jobs run on this machine.

    Every AWS client uses the server if the environment variable AWS_ENDPOINT_URL is its URL. A command that sets it,
    a Region and, for a server without access keys, any key is printed. A browser shows the jobs at the same URL. A
    training job is a program of the client's choice: it runs as the user who started the server. Jobs do not depend on
    the server, but end with its container; started again, it has them all.

    \b
    Example:
      scriptmode serve &
      export AWS_ENDPOINT_URL=http://127.0.0.1:4580 AWS_DEFAULT_REGION=us-east-1 \\
        AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any
      aws sagemaker list-training-jobs
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    if ctx.invoked_subcommand is not None:
        return
    host, port = parse_address(listen)
    table, file, hosts = HostTable(), options.pop("config"), options.pop("hosts")
    if file is not None:
        table = parse_configuration(parse_toml(file.name, file.read()), file.name)
    if hosts:
        require_hosts(hosts, "--hosts")
        table = replace(table, hosts=hosts)
    quotas = parse_quotas(parse_pairs("--quota", options.pop("quotas"), "ml.p4d.24xlarge=2"))
    settings = Settings(host, port, table, queue=options.pop("queue") or 0, quotas=quotas, **options)

    def announce(url: str, command: str) -> None:
        if as_json:
            output.print_json_line({"url": url})
        else:
            output.echo(command)
            output.echo(f"jobs in a browser: {url}", err=True)

    Server(settings, _report).run(announce)


@serve.command()
@click.option("--delete", metavar="ID", help="Delete the access key with this AWS_ACCESS_KEY_ID instead.")
@json_option
def key(delete: str | None, *, as_json: bool) -> None:
    """Create an access key for clients of this machine's server.

    Once there is a key, also on this machine, the server answers only requests that are signed with one. A running
    server accepts a new key at once.

    \b
    Example:
      scriptmode serve key
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    keys = AccessKeys()
    if delete is not None:
        keys.delete(delete)
        output.print_result({"deleted": delete}, f"access key {delete} is deleted", as_json=as_json)
        return
    created = keys.create()
    values = {"AWS_ACCESS_KEY_ID": created.identifier, "AWS_SECRET_ACCESS_KEY": created.secret}
    output.print_result(values, "\n".join(f"export {name}={value}" for name, value in values.items()), as_json=as_json)
