"""The Regions that the installed boto3 knows, and the domains of their services."""

from __future__ import annotations

import functools
import importlib.util
import json
import re
import warnings
from pathlib import Path
from typing import Any

from scriptmode._core.text.messages import did_you_mean


@functools.lru_cache(maxsize=64)
def warn_of_unknown_region(region: str) -> None:
    """Warn, once, of a Region that boto3 does not know: it is misspelled, or newer than the installed boto3."""
    known = [name for partition in partitions() for name in partition["regions"]]
    if known and region not in known:
        step = did_you_mean(region, known) or "correct it, or update boto3"
        warnings.warn(f"the installed boto3 does not know the AWS Region {region!r}; {step}", stacklevel=1)


def find_dns_suffix(region: str) -> str | None:
    """Return the domain of a Region's services, also of one newer than the installed boto3; None without any."""
    for partition in partitions():
        if region in partition["regions"] or re.fullmatch(partition["regionRegex"], region):
            return str(partition["outputs"]["dnsSuffix"])
    return None


@functools.lru_cache(maxsize=1)
def partitions() -> list[dict[str, Any]]:
    """Return the partitions of botocore's data, with their Regions; none where it has no such file."""
    spec = importlib.util.find_spec("botocore")
    if spec is None or spec.origin is None:
        return []
    try:
        # botocore's own reader would import it, which takes longer than a plan.
        content = json.loads(Path(spec.origin).with_name("data").joinpath("partitions.json").read_bytes())
        return [entry for entry in content["partitions"] if {"regions", "regionRegex", "outputs"} <= entry.keys()]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return []
