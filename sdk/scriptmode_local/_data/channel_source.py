"""The source of a job's channel, as the data path reads it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scriptmode._core.spec.inputs import Channel, TrainingInput

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest


class ChannelSource(NamedTuple):
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


def source_of(job: JobRequest, channel: Channel) -> ChannelSource | None:
    """Return the source of a channel of a job; ``None`` for one that is not read from objects or files."""
    source = channel.source
    if not isinstance(source, TrainingInput):
        return None
    return ChannelSource(
        name=channel.name,
        mode=job.input_mode(channel),
        data_type=source.s3_data_type,
        uri=source.s3_data,
        is_sharded=source.is_sharded,
        is_gzipped=source.is_gzipped,
        is_wrapped=source.is_wrapped,
        attribute_names=tuple(source.attribute_names),
        shuffle_seed=None if source.shuffle_config is None else source.shuffle_config.seed,
        content_type=source.content_type,
    )
