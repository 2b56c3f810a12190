"""What the hosts of a running job do, and what it lost, as far as its platform knows."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode.errors import ScriptmodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.core.platforms.base import Platform
    from scriptmode.core.spec.job_description import JobDescription
    from scriptmode.core.spec.service_values import HostActivity


def describe_events(name: str, platform: Platform) -> list[str]:
    """Return the events of a job that ended as texts; none where they cannot be read, as the outcome counts more."""
    with suppress(ScriptmodeError):
        return list(map(str, platform.events(name)))
    return []


def find_activity(description: JobDescription, platform: Platform) -> Mapping[str, HostActivity]:
    """Return what each host of a described job does now, by host; nothing for a job that has ended."""
    return {} if description.has_ended else platform.activity(description.name)
