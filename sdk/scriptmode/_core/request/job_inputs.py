"""The inputs of a job: the argument of ``fit``, which may hold fields of a request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from scriptmode._core.spec.inputs import DEFAULT_CHANNEL, Channel, FileSystemInput, TrainingInput, parse_uri
from scriptmode._core.spec.pipeline_variables import refuse_pipeline_variables
from scriptmode.errors import SpecError

if TYPE_CHECKING:
    from scriptmode._core.spec.inputs import Input


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
    from scriptmode._core.request.sdk_inputs import parse_sdk_input

    if given := parse_sdk_input(where, value):
        return given
    raise SpecError(
        f"{where} is {value!r}",
        "give a path, a URI such as 's3://bucket/train', a TrainingInput or a FileSystemInput"
        + ("" if where != "inputs" else ", or a dict of them by channel"),
        argument="inputs",
    )
