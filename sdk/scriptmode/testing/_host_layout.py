"""The layout of a job's hosts, and the host and the task as which a script under test runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scriptmode._core.spec.distribution import NAMES
from scriptmode._core.text.messages import did_you_mean
from scriptmode.errors import invalid


@dataclass(frozen=True)
class Layout:
    """The hosts of a job, and one of them, as which the script runs.

    Args:
        distribution: ``"parameter-server"``, ``"multi-worker-mirrored"``, ``"mpi"``, or a distribution as `Estimator`
            takes it; by default none.
        instance_count: Number of hosts.
        host: Number of the host, from 1 on: 2 is ``algo-2``.
        task: The task of a host that runs the script as several, such as ``"evaluator"``; by default its first one.
    """

    distribution: object = None
    instance_count: int = 1
    host: int = 1
    task: str = ""

    def __post_init__(self) -> None:
        if self.host not in range(1, self.instance_count + 1):
            raise invalid("host", f"is {self.host!r}", f"give the number of a host, from 1 to {self.instance_count}")

    @property
    def host_name(self) -> str:
        """The host's name in the job."""
        return f"algo-{self.host}"

    @property
    def estimator_arguments(self) -> dict[str, Any]:
        """The arguments of `Estimator` for these hosts."""
        __tracebackhide__ = True
        distribution = self.distribution
        if isinstance(distribution, str):
            if distribution not in NAMES:
                raise invalid("distribution", f"is {distribution!r}", did_you_mean(distribution, list(NAMES)[:3]))
            distribution = {NAMES[distribution]: {"enabled": True}}
        return {"instance_type": "local_process", "instance_count": self.instance_count, "distribution": distribution}

    def __str__(self) -> str:
        kind = self.distribution if isinstance(self.distribution, str) else type(self.distribution).__name__
        prefix = "" if self.distribution is None else f"{kind}-"
        return f"{prefix}{self.host}-of-{self.instance_count}" + (f"-{self.task}" if self.task else "")

    @property
    def __name__(self) -> str:
        """The ID of the test that pytest runs with this value of a parameter."""
        return str(self)


def layouts(distribution: object = None, instance_count: int = 1) -> list[Layout]:
    """Return each host of a job that runs the script, once for each task as which it does: the cases of a test.

    >>> @pytest.mark.parametrize("hosts", layouts("parameter-server", 2))
    ... def test_every_host_trains(entry_point, hosts):
    ...     assert entry_point("train.py", hosts=hosts).exit_code == 0

    Hosts that only run TensorFlow's servers, as in ``ParameterServer(coordinator=True)``, are left out.

    Args:
        distribution: As `Layout` takes it.
        instance_count: Number of hosts.

    Raises:
        SpecError: For values that cannot make a job.
    """
    __tracebackhide__ = True
    from scriptmode._core.platforms import registry
    from scriptmode._core.request.parse import parse_request
    from scriptmode._estimator import Estimator

    registry.require_local_jobs()
    from scriptmode_local import LocalPlatform
    from scriptmode_local._service.one_host import planned_tasks

    arguments = Layout(distribution, instance_count).estimator_arguments
    # The tasks do not depend on the script; this file stands for it.
    platform = LocalPlatform()
    request = Estimator(entry_point=__file__, platform=platform, **arguments).request()
    return [
        Layout(distribution, instance_count, number, task)
        for number, of_host in enumerate(planned_tasks(platform, parse_request(request)), 1)
        for task in of_host
    ]
