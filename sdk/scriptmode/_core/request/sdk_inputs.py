"""Inputs of the SageMaker SDK v2 and v3, which hold fields of a request, and the channels of a request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scriptmode._core.request.fields import parse_input
from scriptmode._core.spec.inputs import TrainingInput, parse_uri
from scriptmode.errors import SpecError

if TYPE_CHECKING:
    from scriptmode._core.spec.inputs import Input

#: Types of values that were left out of an object of the SageMaker SDK v3.
_NOT_GIVEN = ("NoneType", "Unassigned")
#: Members of a Channel's DataSource, and a field that each must have.
_SOURCE_MARKS = {"S3DataSource": "S3Uri", "FileSystemDataSource": "FileSystemId", "DatasetSource": "DatasetArn"}


def parse_sdk_input(where: str, value: Any) -> Input | None:
    """Return the input for one of the SageMaker SDK; ``None`` for another value."""
    if isinstance(getattr(value, "config", None), Mapping) and "DataSource" in value.config:
        # Inputs of the SageMaker SDK v2 hold the Channel of the request.
        return parse_source(where, value.config)
    return _parse_shape(where, value) if hasattr(value, "data_source") else None


def parse_source(where: str, channel: Mapping[str, Any]) -> Input:
    """Return the input of a request's Channel; raise `SpecError` for a data source other than S3 or a file system."""
    kind, given = parse_input(channel)
    if kind is None:
        what = f"{where} has the data source {', '.join(channel['DataSource'])}"
        raise SpecError(what, "give S3 or file system data", argument="inputs")
    return kind(**given)


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
