"""The secret that the hosts of one training job share to authenticate each other's messages. Pure, except random."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from scriptmode.platforms.base import host_count
from scriptmode_runtime.contract import DISTRIBUTION_SWITCHES, SECRET_VARIABLE, decode

if TYPE_CHECKING:
    from collections.abc import Mapping

_BYTES = 32
#: Entries of ``Environment`` that the service takes (TrainingEnvironmentMap).
_MOST_VARIABLES = 100


def with_host_secret(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request with a new secret in its ``Environment``, where several hosts train together and have none.

    Amazon SageMaker gives hosts nothing that others do not know. Every caller that may describe the job can read the
    variable; a process that only reaches the hosts' ports may not. The runtime keeps it from the script. A job with as
    many variables as the service takes goes without: with one more it would be refused.
    """
    parameters = request.get("HyperParameters", {})
    together = any(_is_on(str(parameters.get(switch, ""))) for switch in DISTRIBUTION_SWITCHES)
    environment = request.get("Environment", {})
    if not together or host_count(request) == 1 or SECRET_VARIABLE in environment:
        return dict(request)
    if len(environment) >= _MOST_VARIABLES:
        return dict(request)
    return {**request, "Environment": {**environment, SECRET_VARIABLE: secrets.token_hex(_BYTES)}}


def _is_on(text: str) -> bool:
    """Return whether a switch is on, parsed like the runtime does."""
    value = decode(text)
    return value.lower() in ("true", "1") if isinstance(value, str) else bool(value)
