"""The live view of a training job, in a terminal or a notebook; plain lines elsewhere; and the card of a job.

Not public: `TrainingJob.wait`, ``scriptmode logs -f`` and a notebook's display of a job call `choose_view`,
`follow_job` and `job_card`. `Follower` and `job_card` observe a job as a `JobSnapshot`, a value that knows none of
those that draw it: `TerminalView`, `NotebookView` and the HTML card.
"""

from __future__ import annotations

import os
import sys
from threading import Lock

from scriptmode._core.handle import log_lines
from scriptmode._core.handle.log_filter import ALL_LINES, LogFilter, filtered_events
from scriptmode._core.platforms.registry import Platform
from scriptmode.errors import invalid

PLAIN, TERMINAL, NOTEBOOK = "plain", "terminal", "notebook"
#: Held while a live view is in the terminal: two would erase each other's rows.
_terminal_lock = Lock()


def choose_view(live: bool | None) -> str:  # noqa: FBT001
    """Choose how a job is shown: ``plain``, ``terminal`` or ``notebook``.

    ``live`` is True for a live view, False for plain lines, None to decide by the output.
    Raises `SpecError` for another value of ``live``.
    """
    if not (live is None or isinstance(live, bool)):
        raise invalid("live", f"is {live!r}", "give True, False, or None to decide by the output")
    if live is False:
        return PLAIN
    # This process is the kernel of a notebook; IPython is not imported to find out.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if getattr(shell, "kernel", None) is not None:
        return NOTEBOOK
    is_dumb = os.environ.get("TERM", "") in ("", "dumb") and live is None
    has_blocks = "utf" in (sys.stdout.encoding or "utf-8").lower()
    return TERMINAL if sys.stdout.isatty() and has_blocks and not is_dumb else PLAIN


def follow_job(
    name: str, platform: Platform, which: str, source_dir: str = "", log_filter: LogFilter = ALL_LINES
) -> bool:
    """Show a job until it ends, in the view ``which`` of `choose_view`; return whether the view showed the outcome.

    ``log_filter`` selects the log lines that are shown; metrics are found in all of them.

    In a terminal where another job is already followed, this job's lines scroll above that job's panel.
    """
    if which == PLAIN or (which == TERMINAL and not _terminal_lock.acquire(blocking=False)):
        statuses = log_lines.StatusLines()
        log_lines.show(filtered_events(platform, name, log_filter, follow=True, on_description=statuses))
        return False
    if which == NOTEBOOK:
        from scriptmode._display.follower import Follower
        from scriptmode._display.notebook_view import NotebookView

        Follower(name, platform, NotebookView(platform), source_dir, log_filter).run()
        return True
    try:
        from scriptmode._display.follower import Follower
        from scriptmode._display.terminal_view import TerminalView

        Follower(name, platform, TerminalView(sys.stdout), log_filter=log_filter).run()
    finally:
        _terminal_lock.release()
    return False
