"""What a training host is to the agent, whatever it is made of."""

from __future__ import annotations

from typing import Protocol


class Host(Protocol):
    """One machine of a training job: started once, ended once."""

    @property
    def name(self) -> str:
        """The host's name in the job, such as ``algo-1``."""

    @property
    def address(self) -> str:
        """Where the other hosts reach it."""

    @property
    def pid(self) -> int:
        """The agent's child that ends with the host; 0 before the start."""

    @property
    def machine_failure(self) -> str:
        """What went wrong with the machine, not with its ``train``; "" as long as nothing did."""

    def start(self) -> None:
        """Start the host's ``train``; raise ``OSError`` when it cannot be started."""

    def poll(self) -> int | None:
        """Give the exit code once ``train`` ended, ``-n`` for signal n; never blocks."""

    def terminate(self) -> None:
        """Ask ``train`` to end (SIGTERM)."""

    def kill(self) -> None:
        """End everything on the host (SIGKILL)."""
