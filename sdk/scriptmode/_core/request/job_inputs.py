"""The inputs of a job: the argument of ``fit``, which may hold fields of a request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from scriptmode._core.spec.inputs import DEFAULT_CHANNEL, Channel, FileSystemInput, TrainingInput, parse_uri
from scriptmode._core.spec.pipeline_variables import refuse_pipeline_variables
from scriptmode.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scriptmode._core.spec.inputs import Input


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
    from scriptmode._core.request.sdk_inputs import parse_sdk_input

    if given := parse_sdk_input(where, value):
        return given
    raise SpecError(
        f"{where} is {value!r}",
        "give a path, a URI such as 's3://bucket/train', a TrainingInput or a FileSystemInput"
        + ("" if where != "inputs" else ", or a dict of them by channel"),
        argument="inputs",
    )
