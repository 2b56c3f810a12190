"""The domains of the services of AWS's Regions, as the installed boto3 knows them."""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from pathlib import Path
from typing import Any


def find_dns_suffix(region: str) -> str | None:
    """Return the domain of a Region's services, also of one newer than the installed boto3; None without any."""
    for partition in _partitions():
        if region in partition["regions"] or re.fullmatch(partition["regionRegex"], region):
            return str(partition["outputs"]["dnsSuffix"])
    return None


@functools.lru_cache(maxsize=1)
def _partitions() -> list[dict[str, Any]]:
    """Return the partitions of botocore's data; its own reader would import it, which takes longer than a plan."""
    spec = importlib.util.find_spec("botocore")
    places = (spec.submodule_search_locations or ()) if spec else ()
    files = (Path(place, "data", "partitions.json") for place in places)
    return [partition for file in files for partition in json.loads(file.read_bytes())["partitions"]]
