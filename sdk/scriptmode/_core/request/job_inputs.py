"""The inputs of a job: the argument of ``fit``, and the channels of a request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from scriptmode._core.request.fields import parse_input
from scriptmode._core.spec.inputs import DEFAULT_CHANNEL, Channel, FileSystemInput, Input, TrainingInput, parse_uri
from scriptmode._core.spec.pipeline_variables import refuse_pipeline_variables
from scriptmode.errors import SpecError


def parse_inputs(inputs: object) -> tuple[Channel, ...]:
    """Return the channels for the ``inputs`` argument of ``fit``: ``None``, a URI, an input, or a dict of them."""
    if inputs is None:
        return ()
    if isinstance(inputs, Mapping):
        return tuple(Channel(name, _parse_one(f"inputs[{name!r}]", value)) for name, value in inputs.items())
    return (Channel(DEFAULT_CHANNEL, _parse_one("inputs", inputs)),)


def _parse_one(where: str, value: object) -> Input:
    if isinstance(value, (TrainingInput, FileSystemInput)):
        return value
    refuse_pipeline_variables({where: getattr(value, "config", value)}, "inputs")
    if isinstance(value, (str, os.PathLike)):
        return TrainingInput(parse_uri(where, value))
    config = getattr(value, "config", None)
    if isinstance(config, Mapping) and "DataSource" in config:
        # An input of the SageMaker SDK v2, which has the Channel of a request.
        return parse_source(where, config)
    raise SpecError(
        f"{where} is {value!r}",
        "give a path, a URI such as 's3://bucket/train', a TrainingInput or a FileSystemInput"
        + ("" if where != "inputs" else ", or a dict of them by channel"),
        argument="inputs",
    )


def parse_source(where: str, channel: Mapping[str, Any]) -> Input:
    """Return the input of a request's Channel; raise `SpecError` for a data source other than S3 or a file system."""
    kind, given = parse_input(channel)
    if kind is None:
        what = f"{where} has the data source {', '.join(channel['DataSource'])}"
        raise SpecError(what, "give S3 or file system data", argument="inputs")
    return kind(**given)
