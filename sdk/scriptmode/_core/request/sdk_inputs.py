"""Inputs of the SageMaker SDK v2, which hold fields of a request, and the channels of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scriptmode._core.request.fields import parse_input
from scriptmode.errors import SpecError

if TYPE_CHECKING:
    from scriptmode._core.spec.inputs import Input


def parse_sdk_input(where: str, value: Any) -> Input | None:
    """Return the input for one of the SageMaker SDK v2, which has the Channel of a request; ``None`` for others."""
    config = getattr(value, "config", None)
    return parse_source(where, config) if isinstance(config, Mapping) and "DataSource" in config else None


def parse_source(where: str, channel: Mapping[str, Any]) -> Input:
    """Return the input of a request's Channel; raise `SpecError` for a data source other than S3 or a file system."""
    kind, given = parse_input(channel)
    if kind is None:
        what = f"{where} has the data source {', '.join(channel['DataSource'])}"
        raise SpecError(what, "give S3 or file system data", argument="inputs")
    return kind(**given)
