"""A training job as its CreateTrainingJob request states it: the value that a platform runs and a display shows.

`JobRequest` consists of the values that `TrainingJobSpec` consists of. The difference: an estimator's arguments are
validated, and a platform completes them; a request may be another program's, and the service accepts what an estimator
refuses. So its values are not validated, and its hyperparameters are the texts that the hosts get.

`scriptmode._core.request.parse.parse_request` returns one for a request, and for a description, with the same fields.
Read the attributes, and let the request answer what several fields decide together:

- hosts: ``resources.hosts``, ``.host_groups``, ``.count``, ``.types`` and ``.host_kind``, a `HostKind`
- channels: `JobRequest.input_mode` and `JobRequest.channel_hosts` of one of ``channels``, whose ``source`` has
  ``is_sharded``, ``is_gzipped`` and ``is_wrapped``
- time: ``limits.max_run`` in seconds, the service's default if the request has none
- the script: `JobRequest.program`, `JobRequest.source_uri`, `JobRequest.parameter`

`scriptmode._core.request.render.render_request` returns the request again, equal to the parsed one in every field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scriptmode._core.spec.inputs import MODEL_CONTENT_TYPE, Channel, FileSystemInput, TrainingInput
from scriptmode._core.spec.training_job import CODE_CHANNEL, Algorithm, Limits, Monitoring, Network, Output, Resources
from scriptmode_runtime import contract


class Correction(NamedTuple):
    """A field of a parsed request that its attributes alone would not render as it was.

    ``rendered`` is what they render and ``given`` what the request had, ``ABSENT`` for a field that is not there. It
    applies as long as the attributes render the same.
    """

    path: tuple[str | int, ...]
    rendered: Any
    given: Any


#: A field that is not in a request.
ABSENT = object()


@dataclass(frozen=True)
class JobRequest:
    """One training job, with its name and the values of its request; the module's text describes how to read it."""

    name: str
    resources: Resources
    algorithm: Algorithm
    output: Output
    limits: Limits
    network: Network
    #: With the service's fields alone.
    monitoring: Monitoring
    role: str | None = None
    #: As the hosts get them: in script mode each is JSON.
    hyperparameters: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    channels: tuple[Channel, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    experiment: Mapping[str, str] = field(default_factory=dict)
    #: What an estimator passes as it is, by the names of its arguments.
    plain_fields: Mapping[str, Any] = field(default_factory=dict)
    #: Fields without an attribute, and others that the attributes do not render as they were.
    corrections: tuple[Correction, ...] = ()

    def parameter(self, name: str) -> Any:
        """Return a hyperparameter's value, decoded; ``None`` without it."""
        return contract.decode(self.hyperparameters[name]) if name in self.hyperparameters else None

    @property
    def program(self) -> str:
        """The script; "" for an image with a program of its own."""
        return str(self.parameter(contract.PROGRAM) or "")

    @property
    def model_dir(self) -> str:
        """The script's hyperparameter ``model_dir``; "" where there is none or it is not a string."""
        value = self.parameter(contract.MODEL_DIR_PARAMETER)
        return value if isinstance(value, str) else ""

    @property
    def processes_of_host(self) -> int:
        """The number of processes that the script has on a host, as far as the request tells."""
        if contract.enabled(self.hyperparameters.get(contract.MPI_ENABLED, "")):
            ranks = self.parameter(contract.MPI_PROCESSES_PER_HOST) or 1
            # The runtime takes digits in text, too.
            return int(ranks) if str(ranks).isdecimal() else 1
        is_server = contract.enabled(self.hyperparameters.get(contract.PARAMETER_SERVER_ENABLED, ""))
        has_roles = {contract.PARAMETER_SERVER_ROLES, contract.PARAMETER_SERVER_HOSTS} & self.hyperparameters.keys()
        return 2 if is_server and not has_roles else 1

    @property
    def source_channel(self) -> Channel | None:
        """The channel with the source archive, which a job has under network isolation."""
        if not self._submitted.startswith(contract.DEFAULT_BASE_DIR):
            return None
        return next((channel for channel in self.channels if channel.name == CODE_CHANNEL), None)

    @property
    def source_uri(self) -> str | None:
        """The URI of the source archive; ``None`` where the image has the script."""
        channel = self.source_channel
        if channel is not None and isinstance(channel.source, TrainingInput):
            return channel.source.s3_data
        return self._submitted if "://" in self._submitted else None

    @property
    def model_uris(self) -> dict[str, str]:
        """The URIs of models to start from, by the channel that carries each."""
        return {
            channel.name: channel.source.s3_data
            for channel in self.channels
            if isinstance(channel.source, TrainingInput) and channel.source.content_type == MODEL_CONTENT_TYPE
        }

    @property
    def s3_uris(self) -> list[str]:
        """The S3 URIs of the channels, the source archive and the outputs."""
        inputs = (getattr(channel.source, "s3_data", None) for channel in self.channels)
        uris = (*inputs, self.source_uri, self.output.path, self.output.checkpoint_uri)
        return [uri for uri in uris if uri and uri.startswith("s3://")]

    @property
    def streamed_uris(self) -> tuple[str, ...]:
        """The S3 URIs of the channels that are read while the hosts run: those in Pipe and FastFile mode."""
        return tuple(
            channel.source.s3_data
            for channel in self.channels
            if isinstance(channel.source, TrainingInput) and self.input_mode(channel) != "File"
        )

    def input_mode(self, channel: Channel) -> str:
        """Return how a channel's data reaches its hosts: File, Pipe or FastFile."""
        if isinstance(channel.source, FileSystemInput):
            # It is mounted, whatever the mode of the other channels.
            return "File"
        return getattr(channel.source, "input_mode", None) or self.algorithm.input_mode

    def channel_hosts(self, channel: Channel) -> tuple[str, ...]:
        """Return the names of the hosts that a channel is for; a file system is for every host."""
        wanted = getattr(channel.source, "instance_groups", ())
        groups = self.resources.host_groups
        return tuple(host for group in groups if not wanted or group.name in wanted for host in group.hosts)

    @property
    def _submitted(self) -> str:
        return str(self.parameter(contract.SUBMIT_DIRECTORY) or "")
