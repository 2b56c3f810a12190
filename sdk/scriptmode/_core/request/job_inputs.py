"""The inputs of a job: the argument of ``fit``, which may hold fields of a request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scriptmode._core.request.fields import parse_input
from scriptmode._core.spec.inputs import DEFAULT_CHANNEL, Channel, FileSystemInput, TrainingInput, parse_uri
from scriptmode._core.spec.pipeline_variables import refuse_pipeline_variables
from scriptmode.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scriptmode._core.spec.inputs import Input

#: Types of values that were left out of an object of the SageMaker SDK v3.
_NOT_GIVEN = ("NoneType", "Unassigned")
#: Members of a Channel's DataSource, and a field that each must have.
_SOURCE_MARKS = {"S3DataSource": "S3Uri", "FileSystemDataSource": "FileSystemId", "DatasetSource": "DatasetArn"}


def parse_inputs(inputs: object) -> tuple[Channel, ...]:
    """Return the channels for the ``inputs`` argument of ``fit``.

    That is ``None``, a URI, an input, or a dict of them; also an InputData or a Channel of the SageMaker SDK v3, or a
    list of these, which have names of their own.
    """
    if inputs is None:
        return ()
    if isinstance(inputs, Mapping):
        for name, value in inputs.items():
            if (own := _channel_name(value)) not in (None, name):
                what = f"inputs[{name!r}] has another name, channel_name={own!r}"
                raise SpecError(what, "use the same name", argument="inputs")
        return tuple(Channel(name, _parse_one(f"inputs[{name!r}]", value)) for name, value in inputs.items())
    if isinstance(inputs, (list, tuple)):
        return _parse_list(inputs)
    return (Channel(_channel_name(inputs) or DEFAULT_CHANNEL, _parse_one("inputs", inputs)),)


def _parse_list(inputs: Sequence[object]) -> tuple[Channel, ...]:
    channels: dict[str, Channel] = {}
    for index, value in enumerate(inputs):
        where, name = f"inputs[{index}]", _channel_name(value)
        if name is None:
            what = f"{where} is {value!r}, which has no channel_name"
            raise SpecError(what, "give a dict of inputs by channel", argument="inputs")
        if name in channels:
            raise SpecError(f"inputs has the channel {name!r} twice", "rename one", argument="inputs")
        channels[name] = Channel(name, _parse_one(where, value))
    return tuple(channels.values())


def _channel_name(value: object) -> str | None:
    """Return the name that an InputData or a Channel of the SageMaker SDK v3 has."""
    name = getattr(value, "channel_name", None) if hasattr(value, "data_source") else None
    return name if isinstance(name, str) else None


def _parse_one(where: str, value: object) -> Input:
    if isinstance(value, (TrainingInput, FileSystemInput)):
        return value
    refuse_pipeline_variables({where: getattr(value, "config", value)}, "inputs")
    if isinstance(value, (str, os.PathLike)):
        return TrainingInput(parse_uri(where, value))
    if isinstance(getattr(value, "config", None), Mapping) and "DataSource" in value.config:  # type: ignore[attr-defined]
        # Inputs of the SageMaker SDK v2 hold the Channel of the request.
        return parse_source(where, value.config)  # type: ignore[attr-defined]
    if hasattr(value, "data_source"):
        return _parse_shape(where, value)
    raise SpecError(
        f"{where} is {value!r}",
        "give a path, a URI such as 's3://bucket/train', a TrainingInput or a FileSystemInput"
        + ("" if where != "inputs" else ", or a dict of them by channel"),
        argument="inputs",
    )


def _parse_shape(where: str, value: Any) -> Input:
    """Return the input for an InputData or a Channel of the SageMaker SDK v3, read by their attributes."""
    if isinstance(value.data_source, (str, os.PathLike)):
        content_type = getattr(value, "content_type", None)
        uri = parse_uri(f"{where} data_source", value.data_source)
        return TrainingInput(uri, content_type=content_type if isinstance(content_type, str) else None)
    channel = _shape_fields(value)
    source = channel.get("DataSource")
    if not isinstance(source, dict) or not source:
        advice = "give an S3 URI, a path, an S3DataSource or a FileSystemDataSource"
        raise SpecError(f"{where} data_source is {value.data_source!r}", advice, argument="inputs")
    # InputData has a source itself, Channel a DataSource of which one member is set.
    for member, mark in _SOURCE_MARKS.items():
        if mark in source:
            channel["DataSource"] = {member: source}
    return parse_source(where, channel)


def _shape_fields(value: Any) -> Any:
    """Return the service's fields of an object of the SageMaker SDK v3, whose attributes are named after them."""
    if isinstance(value, (list, tuple)):
        return [_shape_fields(item) for item in value]
    if not hasattr(value, "__dict__"):
        return value
    given = {name: item for name, item in vars(value).items() if type(item).__name__ not in _NOT_GIVEN}
    return {"".join(part.capitalize() for part in name.split("_")): _shape_fields(item) for name, item in given.items()}


def parse_source(where: str, channel: Mapping[str, Any]) -> Input:
    """Return the input of a request's Channel; raise `SpecError` for a data source other than S3 or a file system."""
    kind, given = parse_input(channel)
    if kind is None:
        what = f"{where} has the data source {', '.join(channel['DataSource'])}"
        raise SpecError(what, "give S3 or file system data", argument="inputs")
    return kind(**given)
