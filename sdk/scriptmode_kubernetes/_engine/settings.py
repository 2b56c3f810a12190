"""What `Kubernetes(...)` is given, by its arguments and by SCRIPTMODE_KUBERNETES, a variable with a JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from scriptmode.errors import SpecError

SETTINGS_VARIABLE = "SCRIPTMODE_KUBERNETES"


@dataclass(frozen=True)
class KubernetesSettings:
    """The settings of a job's pods, each as the docstring of `Kubernetes` says; "" for a text that is not given."""

    namespace: str = ""
    context: str = ""
    image: str = ""
    agent_image: str = ""
    agent_python: str = "python3"
    address: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    group_resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    queue: str = ""
    schedule_timeout: int = 300
    restricted: bool = False
    patch: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the settings for the job's record."""
        return {**asdict(self), "tolerations": list(self.tolerations)}


_DEFAULTS = asdict(KubernetesSettings())
_TYPES: dict[str, Any] = {**{name: type(value) for name, value in _DEFAULTS.items()}, "tolerations": (list, tuple)}


def parse_settings(given: Mapping[str, object], environ: Mapping[str, str]) -> KubernetesSettings:
    """Return the settings of arguments, then of the variable; raise `SpecError` naming a wrong one."""
    text = environ.get(SETTINGS_VARIABLE, "")
    try:
        inherited = json.loads(text) if text else {}
    except ValueError as error:
        raise SpecError(f"{SETTINGS_VARIABLE} is no JSON: {error}", "give a JSON object of settings") from error
    if not isinstance(inherited, dict):
        raise SpecError(f"{SETTINGS_VARIABLE} is {text!r}", "give a JSON object of settings")
    for owner, layer in ((SETTINGS_VARIABLE, inherited), ("Kubernetes(...)", given)):
        for name, value in layer.items():
            _check(owner, name, value)
    return settings_from_json({**inherited, **given})


def settings_from_json(content: Mapping[str, Any]) -> KubernetesSettings:
    """Return the settings of a job's record, as `KubernetesSettings.to_json` made it."""
    return KubernetesSettings(**{**content, "tolerations": tuple(content.get("tolerations", ()))})


def _check(owner: str, name: str, value: object) -> None:
    if name not in _TYPES:
        raise SpecError(f"{owner}: {name} is no setting", f"the settings are {', '.join(_TYPES)}", argument=name)
    is_whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if not (is_whole if _TYPES[name] is int else isinstance(value, _TYPES[name])):
        kinds = {str: "text", int: "a whole number, 0 or more", bool: "true or false", dict: "an object"}
        kind = kinds.get(_TYPES[name], "a list")
        raise SpecError(f"{owner}: {name} is {value!r}", f"give {kind}", argument=name)
    if name == "group_resources" and isinstance(value, dict):
        for group in value.values():
            _check(owner, "resources", group)
    # The API would ignore others.
    if name == "resources" and isinstance(value, dict) and not value.keys() <= {"requests", "limits", "claims"}:
        advice = "give requests and limits, such as {'requests': {'cpu': '8', 'memory': '32Gi'}}"
        raise SpecError(f"{owner}: {name} is {value!r}", advice, argument=name)
