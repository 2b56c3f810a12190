"""Settings of the launcher from variables of the job's environment, parsed and validated once. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Callable, NamedTuple

from scriptmode_runtime import contract
from scriptmode_runtime._values.errors import ConfigurationError


class SettingError(ConfigurationError):
    """A variable whose value is not valid; `allowed` describes the valid values."""

    def __init__(self, name: str, value: str, allowed: str) -> None:
        super().__init__(f"{name}={value!r} is not {allowed}")
        self.name = name
        self.value = value
        self.allowed = allowed


class Settings(NamedTuple):
    """The settings of this host's launcher; times in seconds."""

    #: Time between SIGTERM and SIGKILL when the job is stopped; the platform kills the launcher too, a little later.
    stop_grace: float = contract.DEFAULT_STOP_GRACE - contract.STOP_MARGIN
    #: A host that sends nothing for so long is lost.
    host_timeout: float = contract.DEFAULT_HOST_TIMEOUT
    #: Time without output of any host after which stacks are logged. 0: never.
    hang_seconds: float = 0.0
    #: Whether the job fails after that time.
    hang_fails: bool = True
    #: The most that a job's source may have unpacked.
    source_gb: float = contract.DEFAULT_SOURCE_LIMIT_GB
    #: The secret that only the job's hosts know.
    secret: str = ""


def read(environ: Mapping[str, str]) -> Settings:
    """Parse the settings; raises `SettingError` naming the variable, its value and the valid values."""
    values: Any = {}
    for field, (name, parse) in _PARSERS.items():
        if text := environ.get(name, ""):
            try:
                values[field] = parse(text)
            except ValueError as error:
                raise SettingError(name, text, str(error)) from error
    return Settings(**values)


def _number(text: str, *, allowed: str, least: float = 1e-9) -> float:
    with suppress(ValueError):
        if least <= (value := float(text)) < float("inf"):
            return value
    raise ValueError(allowed)


def _fails(text: str) -> bool:
    if text not in ("fail", "continue"):
        raise ValueError("fail or continue")
    return text == "fail"


_seconds = partial(_number, allowed="a number of seconds from 0 on", least=0.0)
_PARSERS: dict[str, tuple[str, Callable[[str], object]]] = {
    "stop_grace": (contract.STOP_GRACE_VARIABLE, _seconds),
    "host_timeout": (contract.HOST_TIMEOUT_VARIABLE, partial(_number, allowed="a number of seconds above 0")),
    "hang_seconds": (contract.HANG_SECONDS_VARIABLE, _seconds),
    "hang_fails": (contract.HANG_ACTION_VARIABLE, _fails),
    "source_gb": (contract.SOURCE_LIMIT_VARIABLE, partial(_number, allowed="a number of GB above 0")),
    "secret": (contract.SECRET_VARIABLE, str),
}
#: The variables of all settings.
VARIABLES = tuple(name for name, _ in _PARSERS.values())
