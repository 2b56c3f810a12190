"""The hosts of a job: processes or containers of this machine, behind the protocols `Host` and `fleet.Fleet`.

- `fleet`: all hosts of a job, and the choice of their kind
- `process_fleet`, `process_host`: hosts that are processes
- `container_fleet`, `container_host`, `job_containers`, `container_limits`: hosts that are containers
- `job_variables`: environment variables of both kinds
- `planned_hosts`: what the hosts of a job would find, without starting it

The agent, recovery and the service import this package. It imports the store, but neither inputs nor outputs.
"""

from __future__ import annotations

from typing import Protocol


class Host(Protocol):
    """One machine of a training job: started once, ended once."""

    @property
    def name(self) -> str:
        """The host's name in the job, such as ``algo-1``."""

    @property
    def address(self) -> str:
        """The address by which the other hosts reach it."""

    @property
    def pid(self) -> int:
        """The agent's child that ends with the host; 0 before the start."""

    def find_process(self) -> int:
        """Return the process ID of the host's first process; 0 while it is unknown. May wait for Docker."""

    @property
    def machine_failure(self) -> str:
        """A failure of the machine, not of its ``train``, such as exhausted memory; "" without one."""

    def start(self) -> None:
        """Start the host's ``train``; raise ``OSError`` if that is impossible."""

    def poll(self) -> int | None:
        """Return the exit code once ``train`` ended, ``-n`` for signal n, else None; never block."""

    def terminate(self) -> None:
        """Send SIGTERM to ``train``."""

    def kill(self) -> None:
        """Kill every process of the host (SIGKILL)."""
