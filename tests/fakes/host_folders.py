"""A training host's folder as the platform writes it."""

import json
import os
import socket
import tarfile
from pathlib import Path

from scriptmode_runtime.contract import DEFAULT_PORTS

ROLES = tuple(DEFAULT_PORTS)
#: What a shell, a URL or a line-based format would trip over.
HOSTILE_NAMES = ["with space", 'quote\'s "double"', "line\nbreak", "ünïcodé-漢字", "$HOME;echo", "-dash"]


def write_host(base, name="algo-1", hosts=("algo-1",), code=None, cluster=None, channels=("train",), **hyperparameters):
    """Write one host's folder; hyperparameters are encoded as script mode does."""
    config = Path(base) / "input" / "config"
    config.mkdir(parents=True)
    group = {"instance_group_name": "homogeneousCluster", "instance_type": "ml.c5.xlarge", "hosts": list(hosts)}
    documents = {
        "hyperparameters": {key: json.dumps(value) for key, value in hyperparameters.items()},
        "inputdataconfig": {channel: {"TrainingInputMode": "File"} for channel in channels},
        "resourceconfig": {
            "current_host": name, "hosts": list(hosts), "network_interface_name": "eth0",
            "current_instance_type": "ml.c5.xlarge", "current_group_name": "homogeneousCluster",
            "instance_groups": [group],
        },
    }  # fmt: skip
    if cluster is not None:
        documents["scriptmode"] = cluster
    for file, document in documents.items():
        (config / f"{file}.json").write_text(json.dumps(document))
    if code is not None:
        write_files(Path(base) / "code", code)
    return Path(base)


def write_job(folder, count, code, **hyperparameters):
    """Write the folders of a job of ``count`` process hosts on this machine; give them by host."""
    names = [f"algo-{number + 1}" for number in range(count)]
    ports = free_ports(count * len(ROLES))
    cluster = {
        "hosts": {
            name: {
                "address": "127.0.0.1",
                "base_dir": str(Path(folder) / name),
                "ports": {role: ports.pop() for role in ROLES},
            }
            for name in names
        },
        "single_machine": True,
        "isolate_requirements": True,
        "secret": os.urandom(8).hex(),
    }
    return {
        name: write_host(Path(folder) / name, name, names, code=code, cluster=cluster, **hyperparameters)
        for name in names
    }


def write_files(folder, files):
    for name, text in files.items():
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Path(folder)


def pack(archive, folder):
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, arcname=".")
    return Path(archive)


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports
