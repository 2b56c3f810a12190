"""A reader of the guide comes from an empty cluster to a trained model: its blocks run in their order, as they are."""

import json
import os
import re
import signal
import socket
import sys
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import pytest
from docs.documents import GUIDES, blocks
from kubernetes.configuration import MACHINE_IMAGE
from outside.reader import Reader

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow, pytest.mark.timeout(1800)]

GUIDE = next(path for path in GUIDES if path.stem == "kubernetes")
NAMESPACE = ("--namespace=ml",)
#: What a cluster's default StorageClass makes; this one has none.
VOLUME = {
    "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "of-the-guide"}, "spec": {
        "capacity": {"storage": "100Gi"}, "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/var/lib/of-the-guide", "type": "DirectoryOrCreate"},
    },
}  # fmt: skip


@pytest.fixture
def reader(idle_cluster, tmp_path):
    """A reader with a kubeconfig file, in an empty directory; the server that it applies is deleted."""
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    variables = {"HOME": str(tmp_path / "home"), "PATH": f"{sys.prefix}/bin:{idle_cluster.path}", "LANG": "C.UTF-8"}
    idle_cluster.apply(VOLUME)
    found = Reader(tmp_path / "work", tmp_path / "state", {**variables, "KUBECONFIG": str(idle_cluster.kubeconfig)})
    yield found
    found.close()
    if (found.folder / "pid").exists():
        os.kill(int((found.folder / "pid").read_text()), signal.SIGTERM)
    idle_cluster.kubectl("delete", "namespace", "ml", "--ignore-not-found")
    idle_cluster.kubectl("delete", "persistentvolume", "of-the-guide")


def as_here(block, reader, cluster, port):
    """Return a block with what differs for this reader: the image, the key, a port that is free, the home directory."""
    text = block.text.replace("registry.example.com/training:1", MACHINE_IMAGE).replace(
        "/home/me", reader.environment["HOME"]
    )
    text = re.sub(r"^\$ pip install .*\n", "", text, flags=re.MULTILINE)
    text = text.replace(
        "4580 &", f"{port}:4580 >forwarded 2>&1 & echo $! >pid; until grep -q Forwarding forwarded; do sleep 0.1; done"
    )
    text = text.replace("127.0.0.1:4580", f"127.0.0.1:{port}")
    if '"AKIA...", "..."' in text:
        secret = cluster.get("secret", "scriptmode", *NAMESPACE)
        key = next(iter(json.loads(b64decode(secret["data"]["keys.json"])).items()))
        text = text.replace('"AKIA...", "..."', ", ".join(map(repr, key)))
    return replace(block, text=text)


def test_a_reader_of_the_guide_trains_from_outside_and_by_the_service(reader, idle_cluster):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for block in blocks(GUIDE):
        if block.not_run in (None, "it needs a cluster"):
            reader.read(as_here(block, reader, idle_cluster, port))
    model = Path(reader.environment["HOME"], ".local/share/scriptmode/jobs/hello-1/output/model.tar.gz")
    for archive in (model, reader.folder / "model.tar.gz"):
        code, listed = reader.run(f"tar -tzf {archive}")
        assert (code, sorted(listed.split())) == (0, ["algo-1", "algo-2"])
