"""What the hosts of a running job do, and what it lost, as far as its platform knows."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from scriptmode.core.platforms.base import ObservesHosts, RecordsEvents
from scriptmode.errors import ScriptmodeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.core.platforms.base import Platform
    from scriptmode.core.spec.job_description import JobDescription
    from scriptmode.core.spec.service_values import HostActivity, JobEvent


def find_events(name: str, platform: Platform) -> tuple[JobEvent, ...]:
    """Return what a job lost and did again; nothing where its platform does not know."""
    return platform.events(name) if isinstance(platform, RecordsEvents) else ()


def describe_events(name: str, platform: Platform) -> list[str]:
    """Return the events of a job that ended as texts; none where they cannot be read, as the outcome counts more."""
    with suppress(ScriptmodeError):
        return list(map(str, find_events(name, platform)))
    return []


def find_activity(description: JobDescription, platform: Platform) -> Mapping[str, HostActivity]:
    """Return what each host of a described job does now, by host; nothing for a job that has ended."""
    if isinstance(platform, ObservesHosts) and not description.has_ended:
        return platform.activity(description.name)
    return {}
