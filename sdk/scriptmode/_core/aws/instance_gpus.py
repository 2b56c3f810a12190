"""The GPUs of Amazon SageMaker's instance types. Pure."""

from __future__ import annotations

import re

#: GPUs of a host by family and size, from DescribeInstanceTypes (Amazon EC2 API); p2 and p3, which it no longer has,
#: from "Run GPU jobs" (AWS Batch User Guide).
_ONE = dict.fromkeys(("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"), 1)
_UP_TO_EIGHT = {**_ONE, "12xlarge": 4, "24xlarge": 4, "48xlarge": 8}
_GPUS: dict[str, dict[str, int]] = {
    "p2": {"xlarge": 1, "8xlarge": 8, "16xlarge": 16},
    "p3": {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8},
    "p3dn": {"24xlarge": 8},
    "p4d": {"24xlarge": 8},
    "p4de": {"24xlarge": 8},
    "p5": {"4xlarge": 1, "48xlarge": 8},
    "p5e": {"48xlarge": 8},
    "p5en": {"48xlarge": 8},
    "g4dn": {**_ONE, "12xlarge": 4},
    "g5": _UP_TO_EIGHT,
    "g6": _UP_TO_EIGHT,
    "g6e": _UP_TO_EIGHT,
}
#: Families without accelerators: c, m, r and t, with a generation.
_NO_GPU = re.compile(r"[cmrt]\d[a-z-]*")


def gpu_count(instance_type: str) -> int | None:
    """Return the number of GPUs of an Amazon SageMaker instance type; ``None`` if it is unknown."""
    _, family, size = (*instance_type.split("."), "", "", "")[:3]
    if instance_type == "local" or _NO_GPU.fullmatch(family):
        return 0
    return _GPUS.get(family, {}).get(size)
