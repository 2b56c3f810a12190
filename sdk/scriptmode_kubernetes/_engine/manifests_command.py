"""``scriptmode serve manifests``."""

from __future__ import annotations

import json
import re

import click
import yaml

from scriptmode_kubernetes._engine.manifests import manifests as render_manifests


@click.command()
@click.option("--namespace", metavar="NAME", default="ml", show_default=True, help="Namespace of all objects.")
@click.option("--image", required=True, metavar="IMAGE", help="Image with this version of scriptmode and its extra "
              "serve, also of jobs that name none.")  # fmt: skip
@click.option(
    "--storage", metavar="SIZE", default="100Gi", show_default=True, help="Size of the volume of jobs and S3."
)
@click.option("--restricted", is_flag=True, help="Keep to Pod Security's standard restricted, also in jobs.")
@click.option("--json", "as_json", is_flag=True, help="Print the objects as one list in JSON.")
def manifests(namespace: str, image: str, storage: str, *, restricted: bool, as_json: bool) -> None:
    """Print the objects of a server in the cluster as YAML, with a new access key in its Secret.

    The server has its jobs, and their objects of S3, on one volume. Its service account may do what the jobs need, in
    this namespace alone.

    \b
    Example:
      scriptmode serve manifests --image registry.example.com/training:1 > serve.yaml
      kubectl apply -f serve.yaml
      kubectl -n ml port-forward service/scriptmode 4580
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?([kMGTPE]|[KMGTPE]i)?", storage):
        raise click.UsageError(f"--storage is {storage!r}; write a size such as 100Gi")
    made = render_manifests(namespace, image, storage, restricted=restricted)
    listed = {"apiVersion": "v1", "kind": "List", "items": made}
    click.echo(json.dumps(listed, indent=2) if as_json else yaml.safe_dump_all(made, sort_keys=False, width=1000))
