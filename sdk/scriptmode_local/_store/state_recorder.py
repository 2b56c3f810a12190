"""Writing of a job's state, on a full disk too: intermediate states are retried, the final one has reserved space."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from scriptmode_local._store.agent_log import write_line

if TYPE_CHECKING:
    from scriptmode_local._store.job_store import JobFolder
    from scriptmode_local._store.state import JobState

#: Interval of retries of a state that could not be written.
RETRY_SECONDS = 1.0
#: How long writing the final state is retried; after that the agent ends without having written it.
LAST_STATE_SECONDS = 600.0


class StateRecorder:
    """Writer of the states of one job to its directory."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self._pending: JobState | None = None
        self._next = 0.0

    def record(self, state: JobState) -> None:
        """Write an intermediate state, now or as soon as it can be written."""
        self._next = time.monotonic() + RETRY_SECONDS
        error = self._refusal(state)
        if error and self._pending is None:
            write_line(f"the state cannot be written, which is tried again: {error}")
        self._pending = state if error else None

    def retry(self) -> None:
        """Retry a state that could not be written, at most once in `RETRY_SECONDS`."""
        if self._pending is not None and time.monotonic() >= self._next:
            self.record(self._pending)

    def record_last(self, state: JobState, wait: Callable[[float], None]) -> None:
        """Write the final state durably; raise ``OSError`` after `LAST_STATE_SECONDS` of failed retries.

        ``wait`` is called between two attempts with the seconds to wait at most.
        """
        self._pending = None
        deadline = time.monotonic() + LAST_STATE_SECONDS
        logged = ""
        while error := self._refusal(state):
            if time.monotonic() >= deadline:
                raise error
            if str(error) != logged:
                logged = str(error)
                write_line(f"the last state, {state.secondary}, cannot be written, which is tried again: {logged}")
            wait(RETRY_SECONDS)

    def _refusal(self, state: JobState) -> OSError | None:
        """Write a state; return the error where it could not be written."""
        try:
            self._folder.write_state(state)
        except OSError as error:
            return error
        return None
