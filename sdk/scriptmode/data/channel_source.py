"""Parse one entry of CreateTrainingJob's InputDataConfig for the data path. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class ChannelSource:
    """The source of a channel and how it is delivered; the service's defaults are filled in."""

    name: str
    #: ``File``, ``Pipe`` or ``FastFile``.
    mode: str
    #: ``S3Prefix``, ``ManifestFile`` or ``AugmentedManifestFile``.
    data_type: str
    #: Of a prefix or a manifest: ``s3://`` or ``file://``, as the request has it.
    uri: str
    is_sharded: bool = False
    is_gzipped: bool = False
    #: Whether each piece becomes one RecordIO record.
    is_wrapped: bool = False
    #: The attributes of an augmented manifest's line that are sent, in this order.
    attribute_names: tuple[str, ...] = ()
    shuffle_seed: int | None = None
    content_type: str | None = None


def input_mode(request: Mapping[str, Any], channel: Mapping[str, Any]) -> str:
    """Return how a channel's data reaches its hosts: File, Pipe or FastFile."""
    job_mode = request.get("AlgorithmSpecification", {}).get("TrainingInputMode", "File")
    return str(channel.get("InputMode", job_mode))


def parse_channel(request: Mapping[str, Any], channel: Mapping[str, Any]) -> ChannelSource:
    """Parse an entry of a valid request's InputDataConfig that has an S3DataSource."""
    source = channel["DataSource"]["S3DataSource"]
    return ChannelSource(
        name=channel["ChannelName"],
        mode=input_mode(request, channel),
        data_type=source["S3DataType"],
        uri=source["S3Uri"],
        is_sharded=source.get("S3DataDistributionType") == "ShardedByS3Key",
        is_gzipped=channel.get("CompressionType") == "Gzip",
        is_wrapped=channel.get("RecordWrapperType") == "RecordIO",
        attribute_names=tuple(source.get("AttributeNames", ())),
        shuffle_seed=channel.get("ShuffleConfig", {}).get("Seed"),
        content_type=channel.get("ContentType"),
    )
