"""The decision whether an output has colours, and the colour of each status of a training job."""

from __future__ import annotations

import os
from typing import TextIO

#: Colours by the status of a job, as rich and click name them; `RUNNING` is that of every other status.
STATUS_COLOURS = {
    "Completed": "green", "Failed": "red", "Unreadable": "red",
    **dict.fromkeys(("Stopped", "Stopping", "MaxRuntimeExceeded", "MaxWaitTimeExceeded"), "yellow"),
}  # fmt: skip
RUNNING = "cyan"


def colours_enabled(stream: TextIO | None) -> bool:
    """Return whether an output has colours: a terminal, or any output where FORCE_COLOR is set.

    NO_COLOR disables them everywhere, and TERM=dumb in a terminal. Both variables count unless they are empty.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
