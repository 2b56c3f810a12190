"""What UpdateTrainingJob changed in the descriptions of training jobs: a file of the job.

Hosts of this machine have neither a profiler nor remote debugging, so that an update changes only what is described.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from scriptmode.data import regular_files
from scriptmode.platforms.local.system.durable import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_FILE = "update.json"
_PARTS = ("ProfilerConfig", "RemoteDebugConfig")
_RULES = "ProfilerRuleConfigurations"
_LOCK = threading.Lock()


def read(folder: Path) -> dict[str, Any]:
    """Return the fields of a description that were updated, from a job's directory for a server's files."""
    try:
        return dict(regular_files.read_json(folder / _FILE))
    except FileNotFoundError:
        return {}


def add(folder: Path, arguments: Mapping[str, Any], description: Mapping[str, Any]) -> None:
    """Record an update of a described job: fields of its configurations, and its rules as a whole."""
    with _LOCK:
        changed = read(folder)
        before = {**description, **changed}
        changed.update({name: {**before.get(name, {}), **arguments[name]} for name in _PARTS if name in arguments})
        if _RULES in arguments:
            changed[_RULES] = arguments[_RULES]
        folder.mkdir(mode=0o700, exist_ok=True)
        replace_file(folder / _FILE, json.dumps(changed).encode())
