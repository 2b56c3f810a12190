"""The hosts of a job: processes or containers of this machine, behind `Fleet` and `Engine`.

- `engine`: all that depends on the kind of the hosts, and the choice of the kind
- `fleet`: the hosts of one job, what their agents do with them, and the start of these agents
- `process_engine`, `process_fleet`, `process_host`, `interpreter`, `planned_processes`: hosts that are processes
- `container_engine`, `container_fleet`, `container_host`, `job_containers`, `container_limits`: containers
- `agent_control`: starting and locating agents; `local_agent`: those of both kinds, detached processes

The agent, recovery and the service import this package. It imports the store, but neither inputs nor outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scriptmode._core.spec.hosts import LOCAL_REGION

#: The user's credentials, Region and endpoints, which hosts with an environment of their own get. SageMaker gives its
#: hosts those of the role.
CREDENTIALS = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
)  # fmt: skip


@dataclass(frozen=True)
class HostSettings:
    """What a platform was given for its hosts: the interpreter, the limits of containers, the engine's own ``options``.

    ``options`` are the arguments of a platform such as `Slurm`. ``recorded`` are the engine's settings of another job,
    whose arguments the job has where no others are given.
    ``region`` is the one of the platform, in which AWS's image of a job is named.
    """

    python: str | None = None
    container_limits: Mapping[str, int | float | str] | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    recorded: Mapping[str, object] = field(default_factory=dict)
    region: str = LOCAL_REGION
