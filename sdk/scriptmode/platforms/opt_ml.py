"""One host's ``/opt/ml``: this module alone knows what is where in it and how its files are spelled."""

from __future__ import annotations

import errno
import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from scriptmode.data.channel_source import input_mode
from scriptmode.platforms import requested_hosts
from scriptmode_runtime import contract
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LOOPBACK = "127.0.0.1"
LOOPBACK_INTERFACE = "lo"


@dataclass(frozen=True)
class Sandbox:
    """The tree of one host below ``base``, which the host itself knows as ``root``: by default as it is."""

    host: str
    base: Path
    root: str = ""
    network_interface: str = LOOPBACK_INTERFACE

    @property
    def model(self) -> Path:
        """What the script leaves to be packed into model.tar.gz."""
        return self.base / contract.MODEL_DIR

    @property
    def output_data(self) -> Path:
        """What the script leaves to be packed into output.tar.gz."""
        return self.base / contract.OUTPUT_DATA_DIR

    @property
    def failure(self) -> Path:
        """What the runtime says of a failure."""
        return self.base / contract.FAILURE_FILE

    def channel(self, name: str) -> Path:
        """Give a channel's folder."""
        return self.base / contract.DATA_DIR / name

    def mapped(self, text: str) -> str:
        """Give what ``text`` means to this host: ``/opt/ml`` and paths below it are its own tree's."""
        return _moved(text, self.root or str(self.base))

    def checkpoints(self, config: Mapping[str, Any]) -> Path:
        """Return the directory that a CheckpointConfig names, or the usual one."""
        return self.base / checkpoints_path(config)

    def directory(self) -> beneath.Directory:
        """Open the host's tree; a container's absolute links mean what it sees below its ``/opt/ml``."""
        return beneath.Directory(self.base, seen_as=self.root)

    def tree(self, path: str) -> beneath.Directory:
        """Open a directory of the host; raise ``NotADirectoryError`` where a container put a link in its place.

        A process's links are this machine's own, and followed.
        """
        if not self.root:
            return beneath.Directory(self.base / path)
        with self.directory() as directory:
            return directory.below(path)

    def status(self, path: str) -> os.stat_result:
        """Return the status of what ``path`` is to the host; raise `EscapeError` for a container's link out of it."""
        try:
            with self.directory() as directory:
                return directory.stat(path)
        except beneath.EscapeError:
            if self.root:
                raise
            return (self.base / path).stat()

    def open_file(self, path: str) -> BinaryIO:
        """Open the regular file that ``path`` is to the host; raise `EscapeError` for a container's link out of it."""
        try:
            with self.directory() as directory:
                return os.fdopen(directory.open_file(path), "rb")
        except beneath.EscapeError:
            if self.root:
                raise
        file = os.fdopen(os.open(self.base / path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        return file

    def read_failure(self) -> str:
        """Return what the failure file says of the host's end; "" where there is none, or something else."""
        try:
            with self.open_file(contract.FAILURE_FILE) as file:
                # No character has more than 4 bytes.
                content = file.read(4 * contract.FAILURE_LIMIT)
        except OSError:
            return ""
        return content.decode("utf-8", "replace")[: contract.FAILURE_LIMIT].strip()

    def prepare(self, request: Mapping[str, Any], scriptmode: Mapping[str, Any]) -> None:
        """Make the folders and write the configuration files; ``scriptmode`` is the content of the cluster file."""
        for folder in (
            contract.CONFIG_DIR,
            contract.DATA_DIR,
            contract.CODE_DIR,
            contract.MODEL_DIR,
            contract.CHECKPOINTS_DIR,
            contract.OUTPUT_DATA_DIR,
            contract.OUTPUT_INTERMEDIATE_DIR,
        ):
            (self.base / folder).mkdir(parents=True, exist_ok=True)
        self.checkpoints(request.get("CheckpointConfig", {})).mkdir(parents=True, exist_ok=True)
        for file, content in self.files(request, scriptmode).items():
            (self.base / file).write_text(json.dumps(content), encoding="utf-8")

    def files(self, request: Mapping[str, Any], scriptmode: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Give the content of each configuration file; without ``scriptmode`` there is no cluster file."""
        told = {
            contract.HYPERPARAMETERS_FILE: self._hyperparameters(request),
            contract.INPUT_DATA_CONFIG_FILE: self._input_data_config(request),
            contract.RESOURCE_CONFIG_FILE: self._resource_config(request),
        }
        return told if scriptmode is None else {**told, contract.CLUSTER_FILE: scriptmode}

    def _hyperparameters(self, request: Mapping[str, Any]) -> dict[str, str]:
        return {name: self._mapped_hyperparameter(text) for name, text in request.get("HyperParameters", {}).items()}

    def _mapped_hyperparameter(self, text: str) -> str:
        value = contract.decode(text)
        if not isinstance(value, str) or self.mapped(value) == value:
            return text
        # Text that is not JSON stands for itself, and goes on doing so.
        return self.mapped(value) if value == text else contract.encode(self.mapped(value))

    def _input_data_config(self, request: Mapping[str, Any]) -> dict[str, dict[str, str]]:
        return {
            channel["ChannelName"]: _input_data(request, channel)
            for channel in request.get("InputDataConfig", ())
            if self.host in requested_hosts.channel_hosts(request, channel)
        }

    def _resource_config(self, request: Mapping[str, Any]) -> dict[str, Any]:
        groups = requested_hosts.groups(request)
        own = next(group for group in groups if self.host in group.hosts)
        return {
            "current_host": self.host,
            "current_instance_type": own.instance_type,
            "current_group_name": own.name,
            "hosts": list(requested_hosts.hosts(request)),
            "instance_groups": [
                {
                    "instance_group_name": group.name,
                    "instance_type": group.instance_type,
                    "hosts": list(group.hosts),
                }
                for group in groups
            ],
            "network_interface_name": self.network_interface,
        }


def one_machine(
    sandboxes: Mapping[str, Sandbox], ports: Mapping[str, Mapping[str, int]], secret: str
) -> dict[str, Any]:
    """Give the cluster file of hosts that are processes of one machine."""
    return {
        "hosts": {
            name: {"address": LOOPBACK, "base_dir": str(sandbox.base), "ports": dict(ports[name])}
            for name, sandbox in sandboxes.items()
        },
        "single_machine": True,
        "isolate_requirements": True,
        "secret": secret,
    }


def checkpoints_path(config: Mapping[str, Any]) -> str:
    """Return the path of the checkpoints below a host's ``/opt/ml``, where the request was validated to have them."""
    default = f"{contract.DEFAULT_BASE_DIR}/{contract.CHECKPOINTS_DIR}"
    return os.path.relpath(config.get("LocalPath", default), contract.DEFAULT_BASE_DIR)


def _moved(path: str, base: str) -> str:
    """Give a path of ``/opt/ml`` as one of ``base``; every other text as it is."""
    root = contract.DEFAULT_BASE_DIR
    return base + path[len(root) :] if path == root or path.startswith(root + "/") else path


def receivers(request: Mapping[str, Any], channel: Mapping[str, Any], sandboxes: Sequence[Sandbox]) -> list[Sandbox]:
    """Give the hosts that a channel is for, in order."""
    hosts = requested_hosts.channel_hosts(request, channel)
    return [sandbox for sandbox in sandboxes if sandbox.host in hosts]


def _input_data(request: Mapping[str, Any], channel: Mapping[str, Any]) -> dict[str, str]:
    source = channel["DataSource"].get("S3DataSource", {})
    spelled = {
        # FastFile looks like files to the script, and the service says so.
        "TrainingInputMode": "Pipe" if input_mode(request, channel) == "Pipe" else "File",
        "S3DistributionType": source.get("S3DataDistributionType", "FullyReplicated"),
        "RecordWrapperType": channel.get("RecordWrapperType", "None"),
    }
    return {**({"ContentType": channel["ContentType"]} if "ContentType" in channel else {}), **spelled}
