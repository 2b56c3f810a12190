"""What the hosts of a running job do, as far as its platform knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.platforms.base import HostActivity, Platform
    from scriptmode.spec.job_description import JobDescription


def find_activity(description: JobDescription, platform: Platform) -> Mapping[str, HostActivity]:
    """Return what each host of a described job does now, by host; nothing for a job that has ended."""
    # A platform of another library may not have the method.
    if description.has_ended or not hasattr(platform, "activity"):
        return {}
    return platform.activity(description.name)
