"""What is seen of a training job while it runs and after it: in a terminal, in a notebook, as plain lines."""

from __future__ import annotations

import os
import sys
from threading import Lock
from typing import TYPE_CHECKING, TextIO

from scriptmode.display import log_lines
from scriptmode.errors import ScriptmodeError, SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.platforms.base import Platform

#: ``plain`` or ``live``: the view where a call does not say.
VIEW_VARIABLE = "SCRIPTMODE_VIEW"
PLAIN, TERMINAL, NOTEBOOK = "plain", "terminal", "notebook"
#: Held while a view is in the terminal: two would take each other's rows away.
_terminal_lock = Lock()


def choose_view(live: bool | None, stream: TextIO | None = None, environ: Mapping[str, str] | None = None) -> str:  # noqa: FBT001
    """Say which view there is: ``plain``, ``terminal`` or ``notebook``; raise `SpecError` for a variable amiss.

    ``live`` is the caller's word, None for none; then the variable SCRIPTMODE_VIEW counts, then what the output is.
    """
    out = sys.stdout if stream is None else stream
    variables = os.environ if environ is None else environ
    if live is None:
        wished = variables.get(VIEW_VARIABLE, "")
        if wished not in ("", "plain", "live"):
            raise SpecError(f"the environment variable {VIEW_VARIABLE} is {wished!r}; set it to plain or live")
        live = {"plain": False, "live": True}.get(wished)
    elif not isinstance(live, bool):
        raise SpecError(f"live is {live!r}; give True, False, or None for what the output is")
    if live is False:
        return PLAIN
    from scriptmode.display import notebook_view

    if notebook_view.is_running():
        return NOTEBOOK
    is_dumb = variables.get("TERM", "") in ("", "dumb") and live is None
    return TERMINAL if out.isatty() and not is_dumb else PLAIN


def follow_job(name: str, platform: Platform, which: str) -> bool:
    """Show a job until it ended, in a view that `kind` named; say whether that told how it ended.

    In a terminal where another job is followed already its lines scroll above that one's panel.
    """
    if which == NOTEBOOK:
        from scriptmode.display.follower import Follower
        from scriptmode.display.notebook_view import NotebookView

        Follower(name, platform, NotebookView(name, platform)).run()
        return True
    if which == TERMINAL and _terminal_lock.acquire(blocking=False):
        try:
            _follow_in_terminal(name, platform)
        finally:
            _terminal_lock.release()
    else:
        log_lines.show(platform.log_events(name, follow=True, on_description=log_lines.StatusLines()))
    return False


def _follow_in_terminal(name: str, platform: Platform) -> None:
    from scriptmode.display.follower import Follower
    from scriptmode.display.terminal_view import TerminalView

    Follower(name, platform, TerminalView(sys.stdout)).run()


def job_card(name: str, platform: Platform) -> str:
    """Give a job as a piece of HTML; of one that cannot be described its name and the reason."""
    from scriptmode.display import html_card
    from scriptmode.display.snapshot_query import query_snapshot

    try:
        view, notes, places = query_snapshot(name, platform)
    except (ScriptmodeError, OSError, ValueError) as error:
        # ValueError: a file of the job's folder that holds something else. A notebook would show a traceback.
        return html_card.render_unknown(name, f"{error}" or type(error).__name__)
    return html_card.render_card(view, notes=notes, places=places)
