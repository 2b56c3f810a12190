"""The inputs of a job: the argument of ``fit``, which may hold fields of a request, and those of a described job."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scriptmode.errors import SpecError
from scriptmode.request.fields import parse_input
from scriptmode.request.parse import parse_request
from scriptmode.spec.inputs import DEFAULT_CHANNEL, Channel, FileSystemInput, TrainingInput, parse_uri

if TYPE_CHECKING:
    from scriptmode.spec.inputs import Input


def parse_inputs(inputs: object) -> tuple[Channel, ...]:
    """Return the channels for the ``inputs`` argument of ``fit``: a URI, an input, a dict of them, or ``None``."""
    if inputs is None:
        return ()
    if isinstance(inputs, Mapping):
        return tuple(Channel(name, _parse_one(f"inputs[{name!r}]", value)) for name, value in inputs.items())
    return (Channel(DEFAULT_CHANNEL, _parse_one("inputs", inputs)),)


def _parse_one(where: str, value: object) -> Input:
    if isinstance(value, (TrainingInput, FileSystemInput)):
        return value
    if isinstance(value, (str, os.PathLike)):
        return TrainingInput(parse_uri(where, value))
    if isinstance(getattr(value, "config", None), Mapping) and "DataSource" in value.config:  # type: ignore[attr-defined]
        # Inputs of the SageMaker SDK hold the Channel of the request.
        return parse_source(where, value.config)  # type: ignore[attr-defined]
    raise SpecError(
        f"{where} is {value!r}",
        argument="inputs",
        advice="give a path, a URI such as 's3://bucket/train', a TrainingInput or a FileSystemInput"
        + ("" if where != "inputs" else ", or a dict of them by channel"),
    )


def parse_source(where: str, channel: Mapping[str, Any]) -> Input:
    """Return the input of a request's Channel; raise `SpecError` for a data source other than S3 or a file system."""
    kind, given = parse_input(channel)
    if kind is None:
        raise SpecError(
            f"{where} has the data source {', '.join(channel['DataSource'])}",
            argument="inputs",
            advice="give S3 or file system data",
        )
    return kind(**given)


def job_inputs(description: Mapping[str, Any]) -> dict[str, Input]:
    """Return a described job's inputs by channel name, without the channels of the source archive and ``model_uri``."""
    job = parse_request(description)
    carried = {*job.model_uris, job.source_channel and job.source_channel.name}
    return {
        channel["ChannelName"]: parse_source(f"channel {channel['ChannelName']!r}", channel)
        for channel in description.get("InputDataConfig", ())
        if channel["ChannelName"] not in carried
    }
