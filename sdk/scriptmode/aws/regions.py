"""The Regions that the installed boto3 knows."""

from __future__ import annotations

import functools
import importlib.util
import json
import warnings
from pathlib import Path

from scriptmode.messages import did_you_mean


@functools.lru_cache(maxsize=64)
def warn_of_unknown_region(region: str) -> None:
    """Warn, once, of a Region that boto3 does not know: it is misspelled, or newer than the installed boto3."""
    known = _known_regions()
    if known and region not in known:
        step = did_you_mean(region, known) or "correct it, or update boto3"
        warnings.warn(f"the installed boto3 does not know the AWS Region {region!r}; {step}", stacklevel=1)


@functools.lru_cache(maxsize=1)
def _known_regions() -> frozenset[str]:
    """Return the names of the Regions of all partitions, from botocore's data; nothing where it has no such file."""
    spec = importlib.util.find_spec("botocore")
    if spec is None or spec.origin is None:
        return frozenset()
    try:
        # botocore's own reader would import it, which takes longer than a plan.
        content = json.loads(Path(spec.origin).with_name("data").joinpath("partitions.json").read_bytes())
        return frozenset(name for partition in content["partitions"] for name in partition["regions"])
    except (OSError, ValueError, LookupError, TypeError):
        return frozenset()
