"""Records a job's state, on a full disk too: a state on the way waits for space, the last one has space reserved."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from scriptmode.platforms.local.store.job_store import JobFolder
    from scriptmode.platforms.local.store.state import JobState

#: How often a state that could not be written is tried again.
RETRY_SECONDS = 1.0
#: How long the last state is tried; the agent ends without having recorded it then.
LAST_STATE_SECONDS = 600.0


class StateRecorder:
    """Writes the states of one job into its folder."""

    def __init__(self, folder: JobFolder, say: Callable[[str], None]) -> None:
        """``say`` writes a line to the agent's log."""
        self._folder = folder
        self._say = say
        self._pending: JobState | None = None
        self._next = 0.0

    def record(self, state: JobState) -> None:
        """Write a state after which others follow, at once or as soon as it can be written."""
        self._next = time.monotonic() + RETRY_SECONDS
        error = self._refusal(state)
        if error and self._pending is None:
            self._say(f"the state cannot be written, which is tried again: {error}")
        self._pending = state if error else None

    def retry(self) -> None:
        """Write a state that could not be written before, at most once in `RETRY_SECONDS`."""
        if self._pending is not None and time.monotonic() >= self._next:
            self.record(self._pending)

    def record_last(self, state: JobState, wait: Callable[[float], None]) -> None:
        """Write the last state, durably; raise ``OSError`` where that was impossible for `LAST_STATE_SECONDS`.

        ``wait`` returns after the given seconds at the latest.
        """
        self._pending = None
        deadline = time.monotonic() + LAST_STATE_SECONDS
        said = ""
        while error := self._refusal(state):
            if time.monotonic() >= deadline:
                raise error
            if str(error) != said:
                said = str(error)
                self._say(f"the last state, {state.secondary}, cannot be written, which is tried again: {said}")
            wait(RETRY_SECONDS)

    def _refusal(self, state: JobState) -> OSError | None:
        """Write a state; return why it could not be written."""
        try:
            self._folder.write_state(state)
        except OSError as error:
            return error
        return None
