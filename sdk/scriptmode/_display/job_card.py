"""The card of a job that is not followed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from scriptmode._core.handle.failed_job import find_failure
from scriptmode._core.platforms.registry import Platform
from scriptmode._core.spec.job_description import JobDescription, JobStatus
from scriptmode._core.text import messages
from scriptmode._display import html_card
from scriptmode._display.collector import Collector
from scriptmode._display.follower import find_roles
from scriptmode.errors import ScriptmodeError

#: Size of a log that is searched for metrics before a card is shown: about a second's work.
_MOST_LOG_BYTES = 5_000_000


def job_card(name: str, platform: Platform, source_dir: str = "") -> str:
    """Return a job as HTML; its name and the reason if it cannot be described."""
    try:
        return _job_card(platform.describe(name), platform, source_dir)
    except (ScriptmodeError, OSError, ValueError) as error:
        # ValueError: a broken file in the job's directory. A notebook would show a traceback.
        return html_card.render_unknown(name, f"{error}" or type(error).__name__)


def _job_card(description: JobDescription, platform: Platform, source_dir: str) -> str:
    """Return a described job as HTML, with notes on what could not be queried."""
    name = description.name
    notes: list[str] = []
    log_locations: dict[str, str] = {}

    @contextmanager
    def noted() -> Iterator[None]:
        try:
            yield
        except ScriptmodeError as error:
            notes.append(str(error))

    collector = Collector(name)
    collector.set_description(description)
    collector.failure = find_failure(description, platform, source_dir)
    collector.roles = find_roles(description.job)
    with noted():
        collector.add_progress(platform.progress(name), time.monotonic())
    with noted():
        collector.set_activity(platform.activity(name))
    with noted():
        if large := _large_log(description, platform):
            size = messages.format_bytes(large)
            notes.append(f"the log has {size}, and was not searched for metrics; job.metrics() searches it")
        else:
            for metric in platform.metrics(description):
                collector.add_value(metric.name, metric.value, metric.host)
    with noted():
        notes += [f"warning: {event}" for event in platform.events(name)]
    if description.status is JobStatus.FAILED:
        with noted():
            log_locations = platform.log_locations(name)
    snapshot = collector.snapshot(platform.clock.wall_time())
    return html_card.render_card(replace(snapshot, notes=(*snapshot.notes, *notes), log_locations=log_locations))


def _large_log(description: JobDescription, platform: Platform) -> int:
    """Return the size of a log on this machine that would be searched for metrics, if it is too large; else 0."""
    job = description.job
    if not job.algorithm.metric_definitions or not job.resources.host_kind.has_local_jobs:
        return 0
    logs = map(Path, platform.log_locations(job.name).values())
    size = sum(log.stat().st_size for log in logs if log.is_file())
    return size if size > _MOST_LOG_BYTES else 0
