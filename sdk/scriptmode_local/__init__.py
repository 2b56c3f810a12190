"""A training service on this machine: it accepts the service's requests and returns the service's shapes.

- `service`: `LocalPlatform`, its settings and the creation of jobs; the only public name
- `stored_jobs`: its methods on jobs that exist; `job_sources`: source archives
- `validation`: validation of requests before a job is created
- `job_index`: the list of jobs, with a cache of those that ended
- `store`: the record of jobs on disk
- `agent`: the process that owns one running job, and recovery
- `tuning`: tuning jobs, whose training jobs the service runs
- `hosts`: hosts as processes or containers
- `inputs`, `outputs`: channels, artifacts, checkpoints and metrics
- `system`: files, processes and ports of the operating system

The HTTP service uses `LocalPlatform` and the `LocalTuning` of `tuning` alone. The doctor also imports `store` and
`system`, and engines what `scriptmode.engines` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scriptmode_local._service.service import LocalPlatform

__all__ = ["LocalPlatform"]


def __getattr__(name: str) -> Any:
    # Imported on first use, because the service needs Linux, and other modules of this package do not.
    if name == "LocalPlatform":
        from scriptmode_local._service.service import LocalPlatform

        return LocalPlatform
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
