"""The server's configuration file: hosts and images that stand for SageMaker's. Pure.

hosts = "local_process"
[instance_types]
"ml.p3.*" = "local_gpu"
[images]
"*.dkr.ecr.*.amazonaws.com/tensorflow-training:2.15*" = "scriptmode/tensorflow:2.15.1"
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from scriptmode._core.text.messages import validate_keys
from scriptmode.errors import SpecError, invalid
from scriptmode_serve._operations.request_mapping import HostTable, require_hosts

_INSTANCE_TYPES, _IMAGES = "instance_types", "images"


def parse_toml(source: str, content: bytes) -> dict[str, Any]:
    """Parse TOML; raise `SpecError` for bytes that are not TOML. ``source`` names the file."""
    # The standard library has a TOML parser since Python 3.11.
    parser: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        return dict(parser.loads(content.decode()))
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{source} is not valid TOML: {error}", "correct the file", argument="config") from error


def parse_configuration(content: dict[str, object], source: str) -> HostTable:
    """Return the table of a configuration file's content; ``source`` names the file in a `SpecError`."""
    validate_keys(source, content, ("hosts", _INSTANCE_TYPES, _IMAGES), argument="config")
    types, images = (_parse_table(content.get(name, {}), name, source) for name in (_INSTANCE_TYPES, _IMAGES))
    hosts = content.get("hosts", HostTable.hosts)
    for name, value in [("hosts", hosts), *types.items()]:
        require_hosts(value, f"{source}: {name}")
    return HostTable(str(hosts), types, images)


def _parse_table(table: object, name: str, source: str) -> dict[str, str]:
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise invalid(f"{source}: {name}", f"is {table!r}", 'write a table of texts, such as "ml.p3.*" = "local_gpu"')
    return dict(table)
