"""What all hosts of a job agree on: its first failure, and the events that every host reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scriptmode_runtime._peers.lead import Lead
    from scriptmode_runtime._peers.member import Member
    from scriptmode_runtime._values.failure import HostFailure


class Agreement:
    """The agreement of this host with its peers; a host without peers agrees with itself at once.

    The first failure is the job's: `fail` keeps this host's own and reports it, and later ones are ignored. Where hosts
    fail at the same time, the first host's launcher decides, and `failure` becomes the same on all of them.
    """

    def __init__(self, peers: Lead | Member | None = None) -> None:
        self._peers = peers
        self._is_final = False
        #: The first failure that this host reported.
        self.own_failure: HostFailure | None = None

    @property
    def has_peers(self) -> bool:
        """Whether this host trains with others."""
        return self._peers is not None

    @property
    def failure(self) -> HostFailure | None:
        """The first failure of any host that is known here; None as long as the job has not failed."""
        return (self._peers and self._peers.failure) or self.own_failure

    @property
    def is_over(self) -> bool:
        """Whether the job has failed, or has completed on this host."""
        return self._is_final or self.failure is not None

    def fail(self, failure: HostFailure) -> None:
        """Record ``failure`` and report it to the other hosts; ignore it after an earlier one, or after `complete`."""
        if self.own_failure is None and not self._is_final:
            self.own_failure = failure
            if self._peers:
                self._peers.fail(failure)

    def complete(self) -> None:
        """Record that no failure of this host counts any more."""
        self._is_final = True

    def announce(self, event: str) -> None:
        """Report to the other hosts that this one reached an event of `plan`."""
        if self._peers:
            self._peers.announce(event)

    def reached(self, event: str) -> bool:
        """Return whether every host reached an event that this one has announced."""
        return self._peers is None or self._peers.reached(event)

    def reached_by_connected(self, event: str) -> bool:
        """Return whether every host reached an event, or no other host is connected any more."""
        return self._peers is None or self._peers.reached(event) or self._peers.disconnected

    def is_known(self) -> bool:
        """Return whether the other hosts know the outcome of this one."""
        return self._peers is None or self._peers.finished
