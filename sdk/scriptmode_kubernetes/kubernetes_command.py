"""``scriptmode kubernetes manifests``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import yaml

from scriptmode_kubernetes.manifests import NAME, PORT, manifests


@click.group()
def kubernetes_command() -> None:
    """Print the manifests with which scriptmode serve runs in a Kubernetes cluster."""


@kubernetes_command.command("manifests")
@click.option("--namespace", metavar="NAME", default="ml", show_default=True, help="Namespace of all objects.")
@click.option("--image", required=True, metavar="IMAGE", help="Image with this version of scriptmode, such as the "
              "training image that scriptmode image built and pushed. Jobs may name others.")  # fmt: skip
@click.option(
    "--storage", metavar="SIZE", default="100Gi", show_default=True, help="Size of the volume of jobs and S3."
)
@click.option("--kustomize", type=click.Path(path_type=Path), metavar="DIRECTORY", help="Write the objects and a "
              "kustomization.yaml into this directory instead of printing them.")  # fmt: skip
def print_manifests(namespace: str, image: str, storage: str, kustomize: Path | None) -> None:
    """Print the objects of a server in the cluster as YAML, with a new access key in its Secret.

    The server has its jobs, and their objects of S3, on one volume. Its service account may do what the jobs need, in
    this namespace alone.

    \b
    Example:
      scriptmode kubernetes manifests --image registry.example.com/scriptmode/tensorflow:2.15.1 > serve.yaml
      kubectl apply -f serve.yaml
      kubectl -n ml port-forward service/scriptmode 4580
    """  # noqa: D301 - \b is click's mark for lines that it must not wrap
    made = manifests(namespace, image, storage)
    text = yaml.safe_dump_all(made, sort_keys=False, width=1000)
    if kustomize is None:
        click.echo(text, nl=False)
        return
    kustomize.mkdir(parents=True, exist_ok=True)
    content: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": namespace,
        "resources": [f"{NAME}.yaml"],
    }
    secret = kustomize / f"{NAME}.yaml"
    secret.touch(mode=0o600)
    secret.write_text(text, encoding="utf-8")
    (kustomize / "kustomization.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    click.echo(f"kubectl apply -k {kustomize}; kubectl -n {namespace} port-forward service/{NAME} {PORT}")
