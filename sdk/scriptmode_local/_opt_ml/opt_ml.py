"""The directory that is a host's ``/opt/ml``: this module alone knows its layout and the content of its files."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from scriptmode.errors import DataError
from scriptmode_local._data import file_copy, file_uris, regular_files
from scriptmode_runtime import contract
from scriptmode_runtime._files import beneath, directory_tree

if TYPE_CHECKING:
    from scriptmode._core.spec.inputs import Channel
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.spec.training_job import Output

#: Where a source archive of this machine is copied for hosts that do not see it.
SOURCE_DIR = "input/source"
LOOPBACK = "127.0.0.1"
#: Bytes of a host's stacks that are shown.
_MOST_STACKS = 4 << 20
LOOPBACK_INTERFACE = "lo"


@dataclass(frozen=True)
class Sandbox:
    """The tree of one host below the directory ``base``; the host sees it as ``root``, by default the same path."""

    host: str
    base: Path
    root: str = ""
    network_interface: str = LOOPBACK_INTERFACE

    @property
    def model(self) -> Path:
        """The directory that is packed into model.tar.gz."""
        return self.base / contract.MODEL_DIR

    @property
    def failure(self) -> Path:
        """The file in which the runtime describes a failure."""
        return self.base / contract.FAILURE_FILE

    def channel(self, name: str) -> Path:
        """Return the directory of a channel."""
        return self.base / contract.DATA_DIR / name

    def map_paths(self, text: str) -> str:
        """Return ``text`` with ``/opt/ml``, or a path below it, changed to the same path of this host's tree."""
        root = contract.DEFAULT_BASE_DIR
        is_path = text == root or text.startswith(f"{root}/")
        return f"{self.root or self.base}{text[len(root) :]}" if is_path else text

    def checkpoints(self, output: Output) -> Path:
        """Return the directory of the checkpoints."""
        return self.base / checkpoints_path(output)

    def directory(self) -> beneath.Directory:
        """Open the host's tree; links below ``/opt/ml`` are resolved as the host sees them."""
        return beneath.Directory(self.base, seen_as=self.root or contract.DEFAULT_BASE_DIR)

    def tree(self, path: str) -> beneath.Directory:
        """Open a directory of the host; raise ``NotADirectoryError`` where a container replaced it by a link.

        Other links of a host that is a process are links of this machine, and are followed.
        """
        if not self.root:
            return beneath.Directory(self.base / path)
        with self.directory() as directory:
            return directory.below(path)

    def status(self, path: str) -> os.stat_result:
        """Return the status of ``path`` for the host; raise `EscapeError` for a container's link out of its tree."""
        try:
            with self.directory() as directory:
                return directory.stat(path)
        except beneath.EscapeError:
            if self.root:
                raise
            return (self.base / path).stat()

    def open_file(self, path: str) -> BinaryIO:
        """Open the regular file ``path`` of the host; raise `EscapeError` for a container's link out of its tree."""
        try:
            with self.directory() as directory:
                return os.fdopen(directory.open_file(path), "rb")
        except beneath.EscapeError:
            if self.root:
                raise
        return regular_files.open_regular(self.base / path)

    def request_stacks(self) -> bool:
        """Ask the host's launcher for the stacks of its processes; return whether it can be asked."""
        with suppress(OSError), self.directory() as directory, directory.at(contract.STACKS_REQUEST, links=False) as at:
            flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            os.close(os.open(at.name, flags, 0o666, dir_fd=at.dir_fd))
            return True
        return False

    def read_stacks(self) -> str | None:
        """Return what the launcher answered to `request_stacks`; None before that."""
        with suppress(OSError):
            if not os.path.lexists(self.base / contract.STACKS_REQUEST):
                with self.open_file(contract.STACKS_ANSWER) as file:
                    return file.read(_MOST_STACKS).decode("utf-8", "replace")
        return None

    def read_failure(self) -> str:
        """Return the beginning of the host's failure file that FailureReason has room for; "" without such a file."""
        try:
            with self.open_file(contract.FAILURE_FILE) as file:
                # A character of UTF-8 has at most 4 bytes.
                content = file.read(4 * contract.FAILURE_LIMIT)
        except OSError:
            return ""
        return content.decode("utf-8", "replace")[: contract.FAILURE_FILE_LIMIT].strip()

    def read_failure_record(self) -> Any:
        """Return the JSON value of the host's record of a failure; None if it is missing, damaged or too large.

        A host can write anything there: the value may have any shape.
        """
        try:
            with self.open_file(contract.FAILURE_RECORD_FILE) as file:
                content = file.read(contract.FAILURE_RECORD_LIMIT + 1)
            return regular_files.parse_json(content) if len(content) <= contract.FAILURE_RECORD_LIMIT else None
        except (OSError, ValueError):
            return None

    def prepare(self, job: JobRequest, scriptmode: Mapping[str, Any], *, copies_source: bool = False) -> None:
        """Create the directories and write the configuration files; ``scriptmode`` is the cluster file's content.

        With ``copies_source`` a source archive of this machine is copied to the host, which does not see it otherwise.
        Raises `DataError` for one that cannot be read.
        """
        if copies_source:
            job = _with_copied_source(job, self)
        for folder in (
            contract.CONFIG_DIR,
            contract.DATA_DIR,
            contract.CODE_DIR,
            contract.MODEL_DIR,
            contract.CHECKPOINTS_DIR,
            contract.OUTPUT_DATA_DIR,
            contract.OUTPUT_INTERMEDIATE_DIR,
            contract.STACKS_DIR,
        ):
            (self.base / folder).mkdir(parents=True, exist_ok=True)
        self.checkpoints(job.output).mkdir(parents=True, exist_ok=True)
        for file, content in self.config_files(job, scriptmode).items():
            (self.base / file).write_text(json.dumps(content), encoding="utf-8")

    def open_to_all_users(self, folder: Path | None = None, *, files: bool = False) -> None:
        """Allow all users to write to the host's tree, or to a folder of it, and with ``files`` to the files there."""
        open_to_all_users(folder or self.base, files=files)

    def read_addresses(self) -> dict[str, str]:
        """Return the addresses of all hosts in the cluster file."""
        content = json.loads((self.base / contract.CLUSTER_FILE).read_text(encoding="utf-8"))
        return {name: str(host["address"]) for name, host in content["hosts"].items()}

    def read_hosts(self) -> list[str]:
        """Return the names of all hosts of this run in the configuration file of the hosts."""
        content = json.loads((self.base / contract.RESOURCE_CONFIG_FILE).read_text(encoding="utf-8"))
        return [str(name) for name in content["hosts"]]

    def write_resource_config(self, job: JobRequest) -> None:
        """Write the configuration file of the hosts and the network once more."""
        (self.base / contract.RESOURCE_CONFIG_FILE).write_text(json.dumps(self._resource_config(job)), encoding="utf-8")

    def config_files(self, job: JobRequest, scriptmode: Mapping[str, Any] | None = None) -> dict[str, object]:
        """Return the content of each configuration file by its path; None for ``scriptmode``: no cluster file."""
        files = {
            contract.HYPERPARAMETERS_FILE: {
                name: self._map_hyperparameter(text) for name, text in job.hyperparameters.items()
            },
            contract.INPUT_DATA_CONFIG_FILE: {
                channel.name: _input_data(job, channel)
                for channel in job.channels
                if self.host in job.channel_hosts(channel)
            },
            contract.RESOURCE_CONFIG_FILE: self._resource_config(job),
        }
        return files if scriptmode is None else {**files, contract.CLUSTER_FILE: scriptmode}

    def _map_hyperparameter(self, text: str) -> str:
        value = contract.decode(text)
        if not isinstance(value, str) or self.map_paths(value) == value:
            return text
        # Text that is not JSON is a plain string, and stays one.
        return self.map_paths(value) if value == text else contract.encode(self.map_paths(value))

    def _resource_config(self, job: JobRequest) -> dict[str, object]:
        groups = job.resources.host_groups
        own = next(group for group in groups if self.host in group.hosts)
        return {
            "current_host": self.host,
            "current_instance_type": own.instance_type,
            "current_group_name": own.name,
            "hosts": list(job.resources.hosts),
            "instance_groups": [
                {"instance_group_name": group.name, "instance_type": group.instance_type, "hosts": list(group.hosts)}
                for group in groups
            ],
            "network_interface_name": self.network_interface,
        }


def single_machine_cluster(
    sandboxes: Mapping[str, Sandbox], ports: Mapping[str, Mapping[str, int]], secret: str
) -> dict[str, object]:
    """Return the content of the cluster file of hosts that are processes of one machine."""
    content = cluster_of_machines(sandboxes, dict.fromkeys(sandboxes, LOOPBACK), ports, secret)
    return {**content, "single_machine": True}


def cluster_of_machines(
    sandboxes: Mapping[str, Sandbox], addresses: Mapping[str, str], ports: Mapping[str, Mapping[str, int]], secret: str
) -> dict[str, object]:
    """Return the content of the cluster file of hosts that are processes of one machine each; else as above."""
    return {
        "hosts": {
            name: {"address": addresses[name], "base_dir": str(sandbox.base), "ports": dict(ports[name])}
            for name, sandbox in sandboxes.items()
        },
        "single_machine": False,
        "isolate_requirements": True,
        "secret": secret,
    }


def with_visible_source(job: JobRequest) -> tuple[JobRequest, Path | None]:
    """Return the job with the source path that hosts see, and its path on this machine, None for one in S3."""
    uri = job.parameter(contract.SUBMIT_DIRECTORY)
    if not isinstance(uri, str) or not file_uris.is_file(uri):
        return job, None
    source = file_uris.file_path(uri)
    seen = contract.encode(f"{contract.DEFAULT_BASE_DIR}/{SOURCE_DIR}/{source.name}")
    return replace(job, hyperparameters={**job.hyperparameters, contract.SUBMIT_DIRECTORY: seen}), source


def _with_copied_source(job: JobRequest, sandbox: Sandbox) -> JobRequest:
    """Copy a source archive of this machine to the host; return the request with the path that the host sees."""
    request, source = with_visible_source(job)
    if source is None:
        return request
    target = sandbox.base / SOURCE_DIR / source.name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            file_copy.copy_regular_file(source, target)
    except OSError as error:
        raise DataError(
            f"the source {source} cannot be read: {error}", advice=f"correct {contract.SUBMIT_DIRECTORY}"
        ) from error
    return request


def open_to_all_users(base: Path, *, files: bool = False) -> None:
    """Allow all users to write, as the image's user is unknown; the job's directory stays closed to other users."""
    # That of an agent without root's rights may be another user's, and open to all.
    if base.stat().st_mode & 0o777 != 0o777:  # noqa: PLR2004 - the bits
        base.chmod(0o777)
    with beneath.Directory(base) as directory:
        for entry in directory_tree.walk(directory):
            if entry.is_directory or (files and stat.S_ISREG(entry.status.st_mode)):
                os.chmod(entry.at.name, 0o777 if entry.is_directory else 0o666, dir_fd=entry.at.dir_fd)


def checkpoints_path(output: Output) -> str:
    """Return the path of the checkpoints relative to ``/opt/ml``; validation refuses a path elsewhere."""
    default = f"{contract.DEFAULT_BASE_DIR}/{contract.CHECKPOINTS_DIR}"
    return os.path.relpath(output.checkpoint_local_path or default, contract.DEFAULT_BASE_DIR)


class ChannelHost(NamedTuple):
    """A host that a channel is for: its position among the ``total`` of them, from 0 on."""

    sandbox: Sandbox
    position: int
    total: int


def channel_hosts(job: JobRequest, channel: Channel, sandboxes: Sequence[Sandbox]) -> list[ChannelHost]:
    """Return those of ``sandboxes``, which may be a part of the job's, that a channel is for, in order."""
    hosts = job.channel_hosts(channel)
    return [
        ChannelHost(sandbox, hosts.index(sandbox.host), len(hosts)) for sandbox in sandboxes if sandbox.host in hosts
    ]


def _input_data(job: JobRequest, channel: Channel) -> dict[str, str]:
    source = channel.source
    content_type = getattr(source, "content_type", None)
    return {
        **({} if content_type is None else {"ContentType": content_type}),
        # The script sees files in FastFile mode, and the service writes File, too.
        "TrainingInputMode": "Pipe" if job.input_mode(channel) == "Pipe" else "File",
        "S3DistributionType": getattr(source, "distribution", "FullyReplicated"),
        "RecordWrapperType": getattr(source, "record_wrapping", None) or "None",
    }
